"""JSON text laid out for people: every character can be seen.

All channels and pages lay out arguments with these functions, so that a person sees the same
call everywhere.
"""

import contextlib
import json
import re
from typing import Final

from thoughtgate.errors import visible

_LINE_END: Final = re.compile(r"(?<!\\)((?:\\\\)*\\n)")
"""A line break inside JSON text; a backslash that is itself escaped does not count."""


def pretty_json(text: str) -> str:
    """Return JSON text in indented lines, with invisible characters written out."""
    with contextlib.suppress(ValueError):  # a text that is not JSON is shown as it is
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return visible(text, kept="\n")


def lay_out_part(part: str) -> str:
    """Return a part of a long JSON text for reading: visible, with a new line at each line break."""
    return visible(_LINE_END.sub(r"\1" + "\n", part), kept="\n")
