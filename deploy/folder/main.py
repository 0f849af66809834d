"""The program of the self-contained folder: the ``thoughtgate`` command.

PyInstaller's loader changes the environment before this runs. Everything that the gate starts must
get the user's own environment, so the changes are undone first; each further process of the gate
begins with the loader again.
"""

import os
import sys
from collections.abc import MutableMapping

LIBRARIES = "LD_LIBRARY_PATH"

MODULES = (
    "thoughtgate.cli.entry",
    "thoughtgate.testing.sample_server",
    "thoughtgate.testing.scripted_agent",
)
"""What ``-m`` runs, and nothing else: the demo starts its processes as an installed Python would."""


def restore_environment(environ: MutableMapping[str, str], libraries: str, before: bytes) -> None:
    """Undo the loader's changes.

    Args:
        environ: the environment of this process.
        libraries: the directory that the loader put first into the search path for libraries.
        before: the variables as the system gave them to this process, each with a NUL at its end.
    """
    for name in [name for name in environ if name.startswith("_PYI_")]:
        del environ[name]
    first, _, rest = environ.get(LIBRARIES, "").partition(":")
    if first == libraries:
        if rest:
            environ[LIBRARIES] = rest
        else:
            del environ[LIBRARIES]
        if environ.get(f"{LIBRARIES}_ORIG") == rest:
            del environ[f"{LIBRARIES}_ORIG"]
    for variable in before.split(b"\0"):
        name, _, value = variable.partition(b"=")
        if name == b"VIRTUAL_ENV":
            environ["VIRTUAL_ENV"] = os.fsdecode(value)


def _variables_at_start() -> bytes:
    try:
        # Not with pathlib, which a shim does not need otherwise.
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:  # macOS has no such file; there, a server does not see VIRTUAL_ENV
        return b""


def main() -> int:
    """Run the command and return its exit code."""
    restore_environment(os.environ, sys._MEIPASS, _variables_at_start())  # type: ignore[attr-defined]  # noqa: SLF001 - the loader's documented name
    if sys.argv[1:2] == ["-m"] and sys.argv[2:3] and sys.argv[2] in MODULES:
        import runpy

        module = sys.argv[2]
        del sys.argv[1:3]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return 0
    from thoughtgate.cli.entry import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
