"""A readable preview of a rewrite, as a unified diff. Changes no file."""

import difflib
from collections.abc import Iterable

from thoughtgate.agents.rewrite import FileRewrite
from thoughtgate.errors import visible


def unified_diff(files: Iterable[FileRewrite], word: str = "wrapped") -> str:
    """Return the changes of a rewrite as a unified diff with three lines of context."""
    parts: list[str] = []
    for changed in files:
        name = visible(str(changed.file.path))
        lines = difflib.unified_diff(
            _lines(changed.file.content), _lines(changed.content), name, f"{name} ({word})"
        )
        for line in lines:
            parts.append(line)
            if not line.endswith("\n"):
                parts.append("\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(content: bytes) -> list[str]:
    # A config file from a repository could contain anything.
    lines = visible(content.decode().replace("\r\n", "\n"), kept="\n\t").split("\n")
    return [*(line + "\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]
