"""Statuses, redirects and times to retry have names of their own."""

from email.utils import formatdate
from time import time

import pytest

from thoughtgate.errors import MAX_RETRY_AFTER_S
from thoughtgate.upstream.http_failures import read_retry_after, redirect_origin, status_error


@pytest.mark.parametrize(
    ("status", "kind", "cause"),
    [
        (401, "upstream_unauthorized", "status_401"),
        (403, "upstream_unauthorized", "status_403"),
        (407, "upstream_unauthorized", "status_407"),
        (404, "upstream_bad_response", "status"),
        (429, "upstream_bad_response", "rate_limited_by_server"),
        (500, "upstream_bad_response", "status"),
        (503, "upstream_bad_response", "unavailable"),
        (307, "upstream_bad_response", "redirected"),
    ],
)
def test_a_status_has_a_kind_and_a_cause(status: int, kind: str, cause: str) -> None:
    error = status_error(status)
    assert (error.kind, error.cause, error.status) == (kind, cause, status)
    assert str(status) in str(error)


def test_a_404_in_a_session_means_that_the_session_is_gone() -> None:
    error = status_error(404, in_session=True)
    assert (error.kind, error.cause) == ("upstream_connection_failed", "session_lost")


@pytest.mark.parametrize(
    ("location", "origin"),
    [
        (b"https://other.example/login?code=secret#x", "https://other.example"),
        (b"http://user:secret@other.example:8080/x", "http://other.example:8080"),
        (b"https://[::1]:9/x", "https://[::1]:9"),
        (b"/login?code=secret", ""),
        (b"//other.example/x", ""),
        (b"javascript:alert(1)", ""),
        (b"https://other.example:99999/", ""),
        (b"https://a\x1bb/", ""),
        (b"https://" + b"a" * 400 + b"/", ""),
        (b"https://\xff/", ""),
        (b"", ""),
    ],
)
def test_a_redirect_is_named_by_the_origin_alone(location: bytes, origin: str) -> None:
    assert redirect_origin(location) == origin
    reason = str(status_error(302, location=location))
    assert "secret" not in reason
    assert f"redirects to {origin or 'another path'}, and" in reason


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"7", 7),
        (b" 7 ", 7),
        (b"9" * 40, MAX_RETRY_AFTER_S),
        (b"-1", 0),
        (b"soon", 0),
        (b"", 0),
        (b"Fri, 31 Dec 1999 23:59:59 GMT", 0),
        (b"Fri, 31 Dec 99999999 23:59:59 GMT", 0),
    ],
)
def test_the_time_to_retry_is_read(value: bytes, seconds: int) -> None:
    assert read_retry_after(value) == seconds
    assert status_error(503, retry_after=value).retry_after == seconds


def test_the_time_to_retry_may_be_a_date() -> None:
    date = formatdate(time() + 3600, usegmt=True).encode()
    assert 3500 < read_retry_after(date) <= 3600
