"""The form for a candidate policy, which is pasted or uploaded but never stored or applied."""

import re
from collections.abc import Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.web.console_context import ConsoleContext, read_body, read_form

MAX_CANDIDATE: Final = 256 * 1024
"""Maximum bytes of a candidate; a config of a thousand rules has half of that."""

MAX_BODY: Final = 2 * MAX_CANDIDATE + 16 * 1024
MAX_PARTS: Final = 8

FORM: Final = "try policy"
"""The action to which the form's token is bound."""

UPLOAD_TYPE: Final = "multipart/form-data"

_BOUNDARY: Final = re.compile(r'boundary="?([A-Za-z0-9\'()+_,./:=? -]{1,70})"?\s*\Z')
_NAME: Final = re.compile(r'\bname="([a-z_]{1,32})"')

Apply = Callable[[ConsoleContext, Request, str], Response]


async def try_candidate(
    context: ConsoleContext, request: Request, about: tuple[str, ...], apply: Apply
) -> Response:
    """Check a form and pass its candidate on, in a thread because trying it takes a while."""
    fields = await read_candidate(request)

    def run() -> Response:
        if fields is None or not context.verify_form(request, fields, *about):
            text = (
                "Nothing was tried: the form was already submitted, is too large, or did not come "
                "from this console. Load the page again."
            )
            return context.render_message(request, 403, "Invalid form", text)
        text = fields.get("file", "").strip() or fields.get("candidate", "").strip()
        if not text or len(text.encode()) > MAX_CANDIDATE:
            why = f"Paste a config or choose a file, of at most {MAX_CANDIDATE // 1024} KB."
            return context.render_message(request, 400, "Nothing was tried", why)
        return apply(context, request, text + "\n")

    return await run_in_threadpool(run)


async def read_candidate(request: Request) -> dict[str, str] | None:
    """Return the fields of a form with an upload; None if it is malformed or too large."""
    kind = request.headers.get("content-type", "")
    if not kind.lower().startswith(UPLOAD_TYPE):
        return await read_form(request)
    boundary = _BOUNDARY.search(kind)
    data = await read_body(request, MAX_BODY)
    if boundary is None or data is None:
        return None
    return _fields(data, b"--" + boundary[1].encode("ascii"))


def _fields(data: bytes, mark: bytes) -> dict[str, str] | None:
    """Return the parts of a body as texts, by name."""
    parts = (b"\r\n" + data).split(b"\r\n" + mark)
    if len(parts) > MAX_PARTS + 2 or parts[-1].strip() != b"--":
        return None
    fields: dict[str, str] = {}
    for part in parts[1:-1]:
        head, found, body = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        # Latin-1 decodes any bytes; the pattern then accepts only plain names.
        name = _NAME.search(head.decode("latin-1"))
        if not found or name is None or name[1] in fields:
            return None
        try:
            fields[name[1]] = body.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return fields
