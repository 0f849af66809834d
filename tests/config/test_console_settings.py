"""The settings of the console."""

import pytest

from thoughtgate.config.console_settings import DEFAULT_CONSOLE, SignInSettings, login_page_at
from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError

TOKEN = "jwt: {issuer: i, audience: a, jwks_url: https://h/k}"


def _settings(console: str) -> Settings:
    text = f"schema: 1\ndefault: deny\nconsole: {{{console}}}\n"
    return load_settings(text, file="t.yaml", env={}, read_text=lambda _: "")


def test_by_default_the_console_is_for_this_machine() -> None:
    console = _settings("port: 7777").console

    assert console.host == DEFAULT_CONSOLE.host == "127.0.0.1"
    assert console.sign_in is None


def test_sign_in_needs_little() -> None:
    found = _settings(f"public_url: https://c.example, sign_in: {{{TOKEN}}}").console.sign_in

    assert isinstance(found, SignInSettings)
    assert (found.header, found.name_claim, found.groups_claim) == (
        "Authorization",
        "email",
        "groups",
    )
    assert found.trusted_proxies == ()


@pytest.mark.parametrize("key", ["issuer", "audience", "jwks_url"])
def test_a_token_without_issuer_audience_or_keys_is_refused(key: str) -> None:
    given = {"issuer": "i", "audience": "a", "jwks_url": "https://h/k"}
    del given[key]
    token = ", ".join(f"{name}: {value}" for name, value in given.items())
    with pytest.raises(ConfigError, match=f"console.sign_in.jwt.{key}"):
        _settings(f"public_url: https://c.example, sign_in: {{jwt: {{{token}}}}}")


def test_a_header_is_a_plain_name() -> None:
    with pytest.raises(ConfigError, match=r"console.sign_in.header"):
        _settings(f"public_url: https://c.example, sign_in: {{{TOKEN}, header: 'X: y'}}")


@pytest.mark.parametrize(
    ("console", "page"),
    [
        ("port: 7777", ""),
        (f"public_url: https://c.example, sign_in: {{{TOKEN}}}", "https://c.example/servers"),
        (f"enabled: false, public_url: https://c.example, sign_in: {{{TOKEN}}}", ""),
    ],
)
def test_the_login_page_is_known_if_the_console_has_a_fixed_url(console: str, page: str) -> None:
    assert _settings(console).console.login_page == page


def test_the_login_page_has_nothing_of_a_sign_in_link() -> None:
    assert login_page_at("") == ""
    link = "http://127.0.0.1:7777/login?token=secret"
    assert login_page_at(link) == "http://127.0.0.1:7777/servers"
