"""``thoughtgate init``: write the starter policy to a file that you can edit."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Argument

from thoughtgate.cli.options import command_app, examples
from thoughtgate.cli.output import create_file
from thoughtgate.config.locate import FILE_NAME
from thoughtgate.errors import Conflict
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

    An existing file is never overwritten.
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
