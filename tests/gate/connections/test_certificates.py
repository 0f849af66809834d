"""The certificate files of a config: contexts made from them, and what is wrong with them."""

import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import Authority

from thoughtgate.config.read_keys import read_settings
from thoughtgate.config.settings import Settings
from thoughtgate.config.tls_settings import ListenTls, ServerTls
from thoughtgate.errors import ConfigError
from thoughtgate.gate.connections.certificates import (
    beside,
    certificate_problems,
    listener_tls,
    server_tls,
    trusting,
)
from thoughtgate.transports.tls import ReloadedContext


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a CA, certificates and keys, beside a config."""
    authority = Authority(tmp_path)
    authority.issue("gate")
    authority.issue("other")
    return tmp_path


def _settings(**keys: Any) -> Settings:
    read = read_settings({"schema": 1, "default": "deny", **keys})
    assert read.settings is not None, read.problems
    return read.settings


def _problems(folder: Path, **keys: Any) -> dict[str, str]:
    config = str(folder / "thoughtgate.yaml")
    found = list(certificate_problems(_settings(**keys), config))
    assert {problem.file for problem in found} <= {config}
    return {problem.key: problem.message for problem in found}


def _listen(**tls: str) -> dict[str, Any]:
    return {"transport": "http", "tls": {"cert": "gate.cert.pem", "key": "gate.key.pem", **tls}}


def test_paths_are_relative_to_the_config_file(folder: Path) -> None:
    config = str(folder / "thoughtgate.yaml")

    assert beside(config, "ca.pem") == str(folder / "ca.pem")
    assert beside(config, "/etc/ca.pem") == "/etc/ca.pem"
    assert beside(config, "") == ""
    assert beside(None, "ca.pem") == str(Path.cwd() / "ca.pem")


def test_contexts_are_made_of_the_files(folder: Path) -> None:
    config = str(folder / "thoughtgate.yaml")
    tls = ServerTls("ca.pem", "gate.cert.pem", "gate.key.pem")

    assert isinstance(server_tls(tls, config, "servers.a.tls"), ReloadedContext)
    assert type(server_tls(None, config, "servers.a.tls")) is ssl.SSLContext
    assert isinstance(trusting("ca.pem", config, "listen.auth.ca"), ssl.SSLContext)
    listen = ListenTls("gate.cert.pem", "gate.key.pem", "ca.pem")
    assert isinstance(listener_tls(listen, config), ReloadedContext)


def test_a_changed_file_is_reported_with_its_key(folder: Path) -> None:
    said: list[str] = []
    listen = ListenTls("gate.cert.pem", "gate.key.pem")
    context = listener_tls(listen, str(folder / "thoughtgate.yaml"), said.append)
    assert isinstance(context, ReloadedContext)

    (folder / "gate.key.pem").chmod(0o644)
    shutil.copy(folder / "other.cert.pem", folder / "gate.cert.pem")
    context.look()

    assert len(said) == 1
    assert said[0].startswith("listen.tls: changed certificate files cannot be used: ")
    assert "chmod 0600" in said[0]


@pytest.mark.parametrize(
    ("tls", "text"),
    [
        (ServerTls(ca="missing.pem"), "No such file or directory"),
        (ServerTls(ca="gate.key.pem"), "no certificate"),
        (ServerTls("", "gate.cert.pem", "other.key.pem"), "does not belong"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_of_the_config(
    tls: ServerTls, text: str, folder: Path
) -> None:
    with pytest.raises(ConfigError, match=text) as raised:
        server_tls(tls, str(folder / "thoughtgate.yaml"), "servers.a.tls")

    assert raised.value.problems[0].key == "servers.a.tls"


def test_good_files_have_no_problems(folder: Path) -> None:
    tls = {"ca": "ca.pem", "client_cert": "gate.cert.pem", "client_key": "gate.key.pem"}
    server = {"url": "https://h/mcp", "tls": tls}

    assert _problems(folder, servers={"a": server}, listen=_listen(client_ca="ca.pem")) == {}


def test_every_missing_file_is_named_with_its_key(folder: Path) -> None:
    missing = {"ca": "1.pem", "client_cert": "2.pem", "client_key": "3.pem"}
    sign_in = {"jwt": {"issuer": "i", "audience": "a", "jwks_url": "https://h/k", "ca": "6.pem"}}
    auth = {"type": "jwt", "jwks_url": "https://h/k", "issuer": "i", "audience": "b", "ca": "5.pem"}

    found = _problems(
        folder,
        servers={"a": {"url": "https://h/mcp", "tls": missing}},
        listen={**_listen(key="4.pem", client_ca="7.pem"), "auth": auth},
        console={"public_url": "https://c", "sign_in": sign_in},
    )

    assert {key: text.partition(":")[0].rpartition("/")[2] for key, text in found.items()} == {
        "servers.a.tls.ca": "1.pem",
        "servers.a.tls.client_cert": "2.pem",
        "servers.a.tls.client_key": "3.pem",
        "listen.tls.key": "4.pem",
        "listen.tls.client_ca": "7.pem",
        "listen.auth.ca": "5.pem",
        "console.sign_in.jwt.ca": "6.pem",
    }


def test_a_key_that_others_can_read_is_refused(folder: Path) -> None:
    (folder / "gate.key.pem").chmod(0o644)

    found = _problems(folder, listen=_listen())

    assert list(found) == ["listen.tls.key"]
    assert "chmod 0600" in found["listen.tls.key"]


def test_a_key_of_another_certificate_is_refused(folder: Path) -> None:
    found = _problems(folder, listen=_listen(key="other.key.pem"))

    assert found == {
        "listen.tls.cert": "cannot be used: the key does not belong to the certificate"
    }
