"""``thoughtgate init``: write the starter policy to a file that you can edit."""

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.output import create_file, write_report
from thoughtgate.cli.policy.packs import compose_config, compose_expectations, summaries
from thoughtgate.config.locate import FILE_NAME
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import Conflict, ThoughtGateError
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import config_digest
from thoughtgate.gate.policy_files.trusted_files import trust_file
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.starter import STARTER_TEXT

app = command_app()


_EXAMPLES = examples(
    "thoughtgate init",
    "thoughtgate init ~/.config/thoughtgate/thoughtgate.yaml",
    "thoughtgate init --pack filesystem --pack git --pack lethal-trifecta",
    "thoughtgate init --list-packs",
)


@app.command(epilog=_EXAMPLES)
def init(
    path: Annotated[
        Path,
        Argument(
            metavar="FILE", help="File to write. Default: thoughtgate.yaml.", show_default=False
        ),
    ] = Path(FILE_NAME),
    *,
    pack: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Policy pack to include; may be given several times."),
    ] = None,
    list_packs: Annotated[bool, Option("--list-packs", help="Only list the packs.")] = False,
    json_: JsonOption = False,
) -> None:
    """Write a commented starter config with the policy that applies if there is no file.

    An existing file is never overwritten. The file is trusted as it is written; after you edit
    a file in a working directory, run 'thoughtgate trust'. With --pack, the expectations of the
    packs are written next to it, for 'thoughtgate policy test'.
    """
    if list_packs:
        found = summaries()
        lines = (f"{name:<16} {text}" for name, text in found.items())
        write_report(found, lines, as_json=json_)
        return
    text = compose_config(pack) if pack else STARTER_TEXT
    target = path / FILE_NAME if path.is_dir() else path
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        tests = target.with_name(f"{target.stem}.tests.yaml")
        if pack and not target.exists():
            # First, so that a file in its place leaves nothing half done.
            create_file(tests, compose_expectations(pack))
        create_file(target, text)
        if pack:
            sys.stderr.write(
                f"Wrote {tests}. To check: thoughtgate policy test {tests} -c {target}\n"
            )
    except FileExistsError as error:
        if not target.parent.is_dir():
            raise Conflict(f"cannot write {target}: {error.filename} is a file") from None
        raise Conflict(
            f"{error.filename} already exists and was not changed; choose another file, "
            "or move it away"
        ) from None
    except OSError as error:
        raise Conflict(f"cannot write {target}: {error.strerror}") from None
    sys.stderr.write(
        f"Wrote {target}. After you edit it, run: thoughtgate validate-config -c {target}\n"
    )
    _trust(target)


def _trust(target: Path) -> None:
    """Trust what was written; only a person can run this command."""
    try:
        digest = config_digest(str(target.absolute()), os.environ)
        trust_file(state_directory(os.environ), str(target), digest, render_time(now()))
    except ThoughtGateError as error:
        sys.stderr.write(f"Not trusted, so in a working directory it can only tighten: {error}\n")
        return
    if target.absolute() == Path.cwd() / FILE_NAME:  # any other is read only where it is named
        sys.stderr.write("It is trusted as it is; after you edit it, run: thoughtgate trust\n")
