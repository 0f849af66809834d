"""What a rewrite would change, for people to read.

Pure: the outcome of a rewrite in, a unified diff out. Touches nothing.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Final

from thoughtgate.agents.rewrite import FileRewrite

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def unified_diff(files: Iterable[FileRewrite]) -> str:
    """Return what a rewrite would change, as a unified diff with three lines of context."""
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
    """Return a text that cannot steer a terminal: a config file may come with a repository."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)
