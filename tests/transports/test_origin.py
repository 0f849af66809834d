"""The origin of an HTTP server, read from its URL."""

import pytest

from thoughtgate.transports.origin import parse_origin


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/",
        "http:///x",
        "http://u:p@x/",
        "http://x/#f",
        "http://x/a b",
        "http://x:99999/",
        "x",
    ],
)
def test_a_url_that_is_not_plain_http_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_origin(url)


def test_the_host_header_names_an_unusual_port_only() -> None:
    assert parse_origin("http://example.com/mcp?x=1").authority == "example.com"
    assert parse_origin("https://example.com:8443/").authority == "example.com:8443"
    assert parse_origin("http://[::1]:80/").authority == "[::1]"
    assert parse_origin("https://example.com").target == "/"
