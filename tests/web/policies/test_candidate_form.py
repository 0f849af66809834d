"""Forms with a candidate: pasted or uploaded, bounded, and never half read."""

from typing import Any

import pytest
from starlette.requests import Request
from tests.support.waiting import run_async

from thoughtgate.web.policies.candidate_form import MAX_BODY, read_candidate

MARK = "----a1"


def upload(*parts: tuple[str, bytes], end: bytes = b"--\r\n", kind: str = "") -> Request:
    body = b"".join(
        b'--%s\r\nContent-Disposition: form-data; name="%s"; filename="x"\r\n\r\n%s\r\n'
        % (MARK.encode(), name.encode(), data)
        for name, data in parts
    )
    body += b"--" + MARK.encode() + end

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    kind = kind or f"multipart/form-data; boundary={MARK}"
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", kind.encode())]}
    return Request(scope, receive)


def read(request: Request) -> dict[str, str] | None:
    return run_async(read_candidate(request))


def test_an_upload_is_read() -> None:
    found = read(upload(("token", b"t"), ("candidate", b""), ("file", b"a: 1\r\nb: \xc3\xa9\n")))

    assert found == {"token": "t", "candidate": "", "file": "a: 1\r\nb: é\n"}


@pytest.mark.parametrize(
    "request_",
    [
        upload(("a", b"1"), ("a", b"2")),
        upload(("a", b"\xff")),
        upload(("a", b"1"), end=b""),
        upload(*[("abcdefghijkl"[n], b"") for n in range(12)]),
        upload(("file", b"x" * (MAX_BODY + 1))),
        upload(("a", b"1"), kind="multipart/form-data"),
        upload(("a", b"1"), kind="multipart/form-data; boundary=\x00"),
        upload(("a", b"1"), kind="text/plain"),
        upload(("A\r\n", b"1")),
    ],
)
def test_anything_else_is_refused(request_: Request) -> None:
    assert read(request_) is None
