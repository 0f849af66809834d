"""``thoughtgate completion``: let the shell complete commands and options.

The scripts ask the program for completions, so they are never out of date.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from thoughtgate.agents.atomic import replace_file
from thoughtgate.cli.options import JsonOption, command_app, examples, require_choice
from thoughtgate.cli.output import write_report
from thoughtgate.cli.shell.command_words import next_words
from thoughtgate.errors import Conflict, UsageError

SCRIPTS: Final = {
    "bash": """\
_thoughtgate() {
  local IFS=$'\n'
  COMPREPLY=($(thoughtgate completion --next -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _thoughtgate thoughtgate
""",
    "zsh": """\
#compdef thoughtgate
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_thoughtgate() {
  local -a found
  found=("${(@f)$(thoughtgate completion --next -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _thoughtgate thoughtgate
""",
    "fish": """\
function __thoughtgate
  thoughtgate completion --next -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c thoughtgate -n '__thoughtgate | string length -q' -f -a '(__thoughtgate)'
""",
}

MARK: Final = "# added by thoughtgate completion --install"

app = command_app()


@app.command(
    epilog=examples(
        "thoughtgate completion --install",
        "thoughtgate completion bash",
        "thoughtgate completion --uninstall",
    )
)
def completion(
    words: Annotated[
        list[str] | None,
        Argument(metavar="[SHELL]", help="bash, zsh or fish. Default: your login shell."),
    ] = None,
    *,
    install: Annotated[
        bool, Option("--install", help="Turn completion on for every new shell.")
    ] = False,
    uninstall: Annotated[bool, Option("--uninstall", help="Undo --install.")] = False,
    next_: Annotated[bool, Option("--next", hidden=True)] = False,
    json_: JsonOption = False,
) -> None:
    """Complete commands and options with the Tab key, in bash, zsh or fish.

    Without --install, print the script, for example to load it in this shell only:
    . <(thoughtgate completion bash)
    """
    if next_:
        sys.stdout.writelines(f"{word}\n" for word in next_words(words or []))
        return
    if len(words or []) > 1:
        raise UsageError("name one shell: bash, zsh or fish")
    shell = words[0] if words else Path(os.environ.get("SHELL", "")).name
    require_choice("SHELL", shell, list(SCRIPTS))
    if not (install or uninstall):
        report = {"shell": shell, "script": SCRIPTS[shell]}
        write_report(report, SCRIPTS[shell].splitlines(), as_json=json_)
        return
    script, start = _places(shell)
    changed = _remove(script, start) if uninstall else _install(shell, script, start)
    done = "Removed" if uninstall else "Wrote"
    lines = [f"{done} {path}" for path in changed] or ["There was nothing to remove."]
    if install:
        lines.append(f"Open a new {shell}, or run: . {shlex.quote(str(script))}")
    write_report({"shell": shell, "files": list(map(str, changed))}, lines, as_json=json_)


def _places(shell: str) -> tuple[Path, Path | None]:
    """Return the file for the script, and the file that loads it when a shell starts."""
    home = Path.home()
    if shell == "fish":  # it loads the scripts in this directory by itself
        config = os.environ.get("XDG_CONFIG_HOME") or home / ".config"
        return Path(config) / "fish" / "completions" / "thoughtgate.fish", None
    data = os.environ.get("XDG_DATA_HOME") or home / ".local" / "share"
    start = home / ".bashrc"
    if shell == "zsh":
        start = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
    return Path(data) / "thoughtgate" / f"completion.{shell}", start


def _install(shell: str, script: Path, start: Path | None) -> list[Path]:
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SCRIPTS[shell], "utf-8")
        if start is None:
            return [script]
        content = start.read_bytes() if start.exists() else b""
        quoted = shlex.quote(str(script))
        line = f"[ -f {quoted} ] && . {quoted}  {MARK}\n".encode()
        if MARK.encode() in content:
            return [script]
        gap = b"\n" if content and not content.endswith(b"\n") else b""
        _replace(start, content, content + gap + line)
    except OSError as error:
        raise Conflict(f"cannot write {error.filename}: {error.strerror or error}") from None
    return [script, start]


def _remove(script: Path, start: Path | None) -> list[Path]:
    changed = []
    try:
        if script.exists():
            script.unlink()
            changed.append(script)
        content = start.read_bytes() if start is not None and start.exists() else b""
        if start is not None and MARK.encode() in content:
            kept = [line for line in content.splitlines(keepends=True) if MARK.encode() not in line]
            _replace(start, content, b"".join(kept))
            changed.append(start)
    except OSError as error:
        raise Conflict(f"cannot change {error.filename}: {error.strerror or error}") from None
    return changed


def _replace(path: Path, before: bytes, after: bytes) -> None:
    """Replace a file, or the file that a link points to, unless another program changed it."""
    target = path.resolve()
    # A start file that does not exist yet is created, so that it can be replaced.
    target.touch()
    if not replace_file(target, after, expected=before):
        raise Conflict(f"{path} was changed by another program; run the command again")
