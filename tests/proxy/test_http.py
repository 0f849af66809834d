"""What a proxy runs, decided before anything is started."""

import http.client
import json
from pathlib import Path

import pytest
from tests.support.http_gate import ACCEPT, call_of
from tests.support.http_upstream import HttpUpstream, text_result
from tests.support.log_lines import verdicts
from tests.support.proxy_process import ProxyProcess

from thoughtgate.errors import ConfigError, UsageError
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.proxy.http import ProxyPlan, plan_proxy

ONE = "schema: 1\ndefault: deny\nservers:\n  up: {url: 'http://127.0.0.1:9/mcp'}\n"
TWO = (
    ONE
    + "  kid: {command: cat, env: {MINE: m}, isolation: session}\n  '*': {expose: {block: [x]}}\n"
)


def _loaded(directory: Path, config: str) -> Loaded:
    path = directory / "thoughtgate.yaml"
    path.write_text(config, "utf-8")
    return load_configuration(str(path), {}, str(directory))


def _plan(directory: Path, config: str, **flags: object) -> ProxyPlan:
    environ = {"PATH": "/bin", "THOUGHTGATE_X": "own", "SECRET": "s"}
    loaded = _loaded(directory, config)
    return plan_proxy(loaded, environ, str(directory), **flags)  # type: ignore[arg-type]  # flags vary


@pytest.mark.requirement("FR3")
def test_the_only_server_is_the_one_that_runs(tmp_path: Path) -> None:
    assert _plan(tmp_path, ONE).server.id == "up"


def test_one_of_several_servers_must_be_chosen(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose with --server"):
        _plan(tmp_path, TWO)
    assert _plan(tmp_path, TWO, server="kid").server.command == "cat"
    with pytest.raises(UsageError, match="there is no server 'nobody'"):
        _plan(tmp_path, TWO, server="nobody")


def test_without_a_server_a_url_is_needed(tmp_path: Path) -> None:
    config = "schema: 1\ndefault: deny\n"
    with pytest.raises(ConfigError, match="--upstream"):
        _plan(tmp_path, config)
    plan = _plan(tmp_path, config, upstream="https://example.com/mcp")
    assert (plan.server.id, plan.server.url) == ("upstream", "https://example.com/mcp")


@pytest.mark.parametrize("url", ["ftp://x", "https://", "http://u:p@x/"])
def test_a_url_that_cannot_be_used_is_a_wrong_config(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=r"servers\.upstream\.url"):
        _plan(tmp_path, "schema: 1\ndefault: deny\n", upstream=url)


def test_an_address_for_others_needs_authentication(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"listen\.auth"):
        _plan(tmp_path, ONE, listen="0.0.0.0:8080")
    assert _plan(tmp_path, ONE, listen="[::1]:8080").listen.host == "::1"
    assert _plan(tmp_path, ONE, listen=":8080").listen.host == "127.0.0.1"


@pytest.mark.parametrize("listen", ["8080", "host:", "host:99999", "host:-1"])
def test_an_address_that_is_none_is_a_usage_error(tmp_path: Path, listen: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        _plan(tmp_path, ONE, listen=listen)


def test_flags_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude"):
        _plan(tmp_path, ONE, stdio=True, listen="127.0.0.1:1")
    assert _plan(tmp_path, ONE, stdio=True).listen.transport == "stdio"
    with pytest.raises(UsageError, match="workers"):
        _plan(tmp_path, TWO, server="kid", listen="127.0.0.1:1", workers=2)
    assert _plan(tmp_path, ONE, listen="127.0.0.1:1", workers=2).listen.workers == 2


@pytest.mark.requirement("FR14")
def test_a_token_must_be_set_and_goes_over_https_only(tmp_path: Path) -> None:
    auth = "{url: '%s', auth: {type: bearer, token_env: UP_TOKEN}}"
    config = f"schema: 1\ndefault: deny\nservers:\n  up: {auth % 'https://example.com/mcp'}\n"
    with pytest.raises(ConfigError, match="UP_TOKEN is not set"):
        _plan(tmp_path, config)


def test_a_server_sees_its_own_variables_and_none_of_the_gates(tmp_path: Path) -> None:
    plan = _plan(tmp_path, TWO, server="kid")
    command = plan.server_setup().command(plan.server, plan.settings)
    assert command.env["MINE"] == "m"
    assert "THOUGHTGATE_X" not in command.env
    assert command.env["PATH"] == "/bin"


@pytest.mark.parametrize("form", ["human", "json"])
def test_log_lines_are_written_beside_the_metrics_when_the_config_wants_json(
    tmp_path: Path, form: str
) -> None:
    with HttpUpstream(lambda one: text_result(one, "x")) as upstream:
        path = tmp_path / "thoughtgate.yaml"
        config = f"schema: 1\ndefault: deny\ntelemetry: {{log_format: {form}}}\n"
        path.write_text(f"{config}servers: {{far: {{url: '{upstream.url}'}}}}\n", "utf-8")
        with ProxyProcess(tmp_path, ["-c", str(path), "--listen", "127.0.0.1:0"]) as proxy:
            link = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=15)
            head = {"content-type": "application/json", "accept": ACCEPT}
            link.request("POST", "/mcp", json.dumps(call_of("echo", {}, ident=1)), head)
            link.getresponse().read()
            link.request("GET", "/metrics")
            counted = link.getresponse().read().decode()
            link.close()
            assert proxy.stop() == 0
    said = [line["governance_decision"] for line in verdicts(proxy.stderr, "proxy")]
    assert said == (["deny"] if form == "json" else [])
    assert "thoughtgate_decisions_total{" in counted
    if form == "json":
        policy, listening, *_ = map(json.loads, proxy.stderr.splitlines())
        assert policy["message"].startswith("policy ")
        assert "listening on" in listening["message"]
        assert all(json.loads(line)["component"] for line in proxy.stderr.splitlines())
