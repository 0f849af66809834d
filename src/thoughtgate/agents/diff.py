"""A readable preview of a rewrite, as a unified diff. Changes no file."""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from thoughtgate.agents.rewrite import FileRewrite

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def unified_diff(files: Iterable[FileRewrite]) -> str:
    """Return the changes of a rewrite as a unified diff with three lines of context."""
    parts: list[str] = []
    for changed in files:
        name = _visible(str(changed.file.path))
        lines = difflib.unified_diff(
            _lines(changed.file.content), _lines(changed.content), name, f"{name} (wrapped)"
        )
        for line in lines:
            parts.append(line)
            if not line.endswith("\n"):
                parts.append("\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(content: bytes) -> list[str]:
    lines = _visible(content.decode()).split("\n")
    return [*(line + "\n" for line in lines[:-1]), *([lines[-1]] if lines[-1] else [])]


def _visible(text: str) -> str:
    """Escape control characters: a config file from a repository could contain anything."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
