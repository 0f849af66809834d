"""The settings of TLS: what the file may say."""

from typing import Any

from thoughtgate.config.read_keys import read_settings
from thoughtgate.config.tls_settings import ListenTls, ServerTls


def _read(**keys: Any) -> Any:
    return read_settings({"schema": 1, "default": "deny", **keys})


def test_a_server_may_have_a_private_ca_and_a_client_certificate() -> None:
    tls = {"ca": "ca.pem", "client_cert": "c.pem", "client_key": "k.pem"}
    read = _read(servers={"a": {"url": "https://h/mcp", "tls": tls}})

    assert read.settings is not None, read.problems
    assert read.settings.servers["a"].tls == ServerTls("ca.pem", "c.pem", "k.pem")


def test_a_listener_needs_both_a_certificate_and_a_key() -> None:
    whole = _read(listen={"transport": "http", "tls": {"cert": "c.pem", "key": "k.pem"}})
    half = _read(listen={"transport": "http", "tls": {"cert": "c.pem"}})

    assert whole.settings.listen.tls == ListenTls("c.pem", "k.pem")
    assert [path for path, _ in half.problems] == [("listen", "tls", "key")]
