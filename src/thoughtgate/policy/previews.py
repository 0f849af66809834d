"""Previews: the beginning of a JSON value in the record, with its secrets masked."""

from typing import Any, Final

from thoughtgate.policy.redaction import Redactor
from thoughtgate.wire.canonical import canonical_json

MAX_PREVIEW: Final = 16_384
"""Default number of bytes of the arguments that a record event shows."""

MAX_SECRET: Final = 16_384
"""Characters after the shown part that are also searched for secrets: a secret that the cut splits
may be recognisable only by its end."""

MAX_INSPECT: Final = 1_048_576
"""Values in requests longer than this are judged and hashed, but not previewed."""

TRUNCATED: Final = "[TRUNCATED]"


def preview(
    value: dict[str, Any], text: str, size: int, limit: int, redactor: Redactor
) -> tuple[str, bool]:
    """Return a value of a request in at most ``limit`` bytes, and whether it is incomplete.

    ``text`` is the canonical text of the value, or empty if that is not known; ``size`` is the
    length of the request.
    """
    if size > MAX_INSPECT:
        return TRUNCATED, True
    # Only the shown part and a margin are searched for secrets; large arguments stay cheap.
    if not text or not redactor.is_clean(value, text[: limit + MAX_SECRET]):
        text = canonical_json(redactor.mask_value(value))
    if len(text) * 4 <= limit:  # a character takes at most four bytes in UTF-8
        return text, False
    data = text.encode()
    if len(data) <= limit:
        return text, False
    # "ignore" drops a character that the cut has split.
    cut = data[: max(0, limit - len(TRUNCATED))].decode("utf-8", "ignore")
    return cut + TRUNCATED, True
