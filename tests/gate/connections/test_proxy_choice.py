"""Which HTTP proxy leads to a server."""

import pytest

from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import ConfigError
from thoughtgate.gate.connections.proxy_choice import ProxyChoice, choose_proxy, proxy_of

HTTPS = "https://mcp.example.org/mcp"
HTTP = "http://mcp.example.org:8080/mcp"


@pytest.mark.parametrize(
    ("url", "environ", "expected"),
    [
        (HTTPS, {}, None),
        (HTTPS, {"HTTPS_PROXY": "http://p:1"}, ("http://p:1", "HTTPS_PROXY")),
        (HTTPS, {"https_proxy": "http://p:1"}, ("http://p:1", "https_proxy")),
        (HTTPS, {"https_proxy": "http://l:1", "HTTPS_PROXY": "http://u:1"}, ("http://l:1", "https_proxy")),
        (HTTPS, {"HTTPS_PROXY": " "}, None),
        (HTTPS, {"HTTP_PROXY": "http://p:1"}, None),
        (HTTP, {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://q:1"}, ("http://p:1", "HTTP_PROXY")),
        (HTTPS, {"ALL_PROXY": "p:1"}, ("http://p:1", "ALL_PROXY")),
        (HTTPS, {"ALL_PROXY": "http://a:1", "HTTPS_PROXY": "http://p:1"}, ("http://p:1", "HTTPS_PROXY")),
        ("http://localhost:9/mcp", {"HTTP_PROXY": "http://p:1"}, None),
        ("http://127.0.0.9:9/mcp", {"ALL_PROXY": "http://p:1"}, None),
        ("http://[::1]:9/mcp", {"ALL_PROXY": "http://p:1"}, None),
    ],
)  # fmt: skip
def test_the_environment_is_read_as_other_programs_read_it(
    url: str, environ: dict[str, str], expected: tuple[str, str] | None
) -> None:
    assert proxy_of(url, environ) == expected


@pytest.mark.parametrize(
    ("url", "exceptions", "is_direct"),
    [
        (HTTPS, "*", True),
        (HTTPS, "mcp.example.org", True),
        (HTTPS, "MCP.Example.ORG", True),
        (HTTPS, "other, example.org", True),
        (HTTPS, "other .example.org", True),
        (HTTPS, "*.example.org", True),
        (HTTPS, "ample.org", False),
        (HTTPS, "a.mcp.example.org", False),
        (HTTPS, "example.org:443", True),
        (HTTPS, "example.org:8443", False),
        (HTTP, "example.org:8080", True),
        (HTTPS, ".,,", False),
        ("https://10.1.2.3/mcp", "10.0.0.0/8", True),
        ("https://10.1.2.3/mcp", "10.1.2.3", True),
        ("https://10.1.2.3/mcp", "10.1.2.3:443", True),
        ("https://10.1.2.3/mcp", "11.0.0.0/8", False),
        ("https://[fd00::1]/mcp", "fd00::/8", True),
        ("https://[fd00::1]/mcp", "[fd00::1]", True),
        ("https://[fd00::1]/mcp", "fd00::2", False),
    ],
)
def test_exceptions_name_hosts_domains_networks_or_all(
    url: str, exceptions: str, is_direct: bool
) -> None:
    found = proxy_of(
        url, {"HTTPS_PROXY": "http://p:1", "HTTP_PROXY": "http://p:1", "no_proxy": exceptions}
    )

    assert (found is None) == is_direct


ENVIRON = {"HTTPS_PROXY": "http://env:1"}


@pytest.mark.parametrize(
    ("setting", "agent_started", "expected"),
    [
        ("", False, "http://env:1"),
        ("", True, None),
        ("environment", True, "http://env:1"),
        ("environment", False, "http://env:1"),
        ("none", False, None),
        ("http://own:1", False, "http://own:1"),
        ("http://own:1", True, "http://own:1"),
    ],
)
def test_an_agents_environment_counts_only_if_the_config_says_so(
    setting: str, agent_started: bool, expected: str | None
) -> None:
    server = ServerSettings("a", url=HTTPS, proxy=setting)

    chosen = choose_proxy(server, ENVIRON, agent_started=agent_started)

    assert (chosen.url if chosen else None) == expected


def test_a_key_of_the_config_leads_this_machine_too_through_a_proxy() -> None:
    server = ServerSettings("a", url="http://127.0.0.1:9/mcp", proxy="http://own:1")

    assert choose_proxy(server, {}, agent_started=False) == ProxyChoice(
        "http://own:1", "servers.a.proxy"
    )


def test_a_stdio_server_has_no_proxy() -> None:
    assert choose_proxy(ServerSettings("a", command="x"), ENVIRON, agent_started=False) is None


def test_a_variable_of_another_kind_is_a_problem_that_names_it_and_hides_its_password() -> None:
    server = ServerSettings("a", url=HTTPS)

    with pytest.raises(ConfigError) as raised:
        choose_proxy(server, {"ALL_PROXY": "socks5://u:secret@p:1"}, agent_started=False, file="f")

    (problem,) = raised.value.problems
    assert problem.key == "servers.a.proxy"
    assert problem.file == "f"
    assert "ALL_PROXY" in problem.message
    assert "secret" not in str(problem)
