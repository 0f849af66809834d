"""``thoughtgate init``: write the starter policy to a file that you can edit."""

import os
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument

from thoughtgate.cli.options import command_app, examples
from thoughtgate.cli.output import create_file
from thoughtgate.config.locate import FILE_NAME
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import Conflict, ThoughtGateError
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import config_digest
from thoughtgate.gate.policy_files.trusted_files import trust_file
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.starter import STARTER_TEXT

app = command_app()


_EXAMPLES = examples("thoughtgate init", "thoughtgate init ~/.config/thoughtgate/thoughtgate.yaml")


@app.command(epilog=_EXAMPLES)
def init(
    path: Annotated[
        Path,
        Argument(
            metavar="FILE", help="File to write. Default: thoughtgate.yaml.", show_default=False
        ),
    ] = Path(FILE_NAME),
) -> None:
    """Write a commented starter config with the policy that applies if there is no file.

    An existing file is never overwritten. The file is trusted as it is written; after you edit
    a file in a working directory, run 'thoughtgate trust'.
    """
    target = path / FILE_NAME if path.is_dir() else path
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_file(target, STARTER_TEXT)
    except FileExistsError:
        raise Conflict(
            f"{target} already exists and was not changed; choose another file, or move it away"
        ) from None
    except OSError as error:
        raise Conflict(f"cannot write {target}: {error.strerror}") from None
    sys.stderr.write(
        f"Wrote {target}. After you edit it, run: thoughtgate validate-config -c {target}\n"
    )
    _trust(target)


def _trust(target: Path) -> None:
    """Trust what was written, unless an agent had it written."""
    try:
        digest = config_digest(str(target.absolute()), os.environ)
        trust_file(state_directory(os.environ), str(target), digest, render_time(now()))
    except ThoughtGateError as error:
        sys.stderr.write(f"Not trusted, so in a working directory it can only tighten: {error}\n")
        return
    if target.absolute().parent == Path.cwd():
        sys.stderr.write("It is trusted as it is; after you edit it, run: thoughtgate trust\n")
