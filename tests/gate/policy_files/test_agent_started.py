"""The environment of gates that an agent starts cannot loosen them."""

import pytest

from thoughtgate.errors import UsageError
from thoughtgate.gate.policy_files import agent_started as module
from thoughtgate.gate.policy_files.agent_started import agent_started, find_chosen_values
from thoughtgate.gate.policy_files.parsed_documents import ParsedDocuments

HOME = "/home/ann"
STATE = f"{HOME}/.local/state/thoughtgate"


@pytest.fixture(autouse=True)
def _account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "account_home", lambda: HOME)
    monkeypatch.setattr("sys.platform", "linux")


@pytest.mark.promise("agent-environment")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THOUGHTGATE_PROFILE", "development"),
        ("THOUGHTGATE_PROFILE", "nonsense"),
        ("THOUGHTGATE_CONFIG", "/tmp/loose.yaml"),
        ("THOUGHTGATE_APPROVAL_TIMEOUT_SECS", "5"),
        ("THOUGHTGATE_UPSTREAM", "http://other/mcp"),
        ("THOUGHTGATE_STORE", "sqlite"),
    ],
)
def test_a_variable_that_may_loosen_is_left_out_and_named(name: str, value: str) -> None:
    found = agent_started({"HOME": HOME, name: value})
    assert name not in found.environ
    assert [name in one for one in found.warnings] == [True]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("THOUGHTGATE_PROFILE", "production"),
        ("THOUGHTGATE_AGENT_ID", "me"),
        ("SUB_RUN_ID", "r"),
        ("THOUGHTGATE_LOG_LEVEL", "debug"),
        ("TOKEN", "t"),
    ],
)
def test_other_variables_stay(name: str, value: str) -> None:
    found = agent_started({"HOME": HOME, name: value})
    assert found.environ == {"HOME": HOME, name: value, "THOUGHTGATE_STATE_DIR": STATE}
    assert found.warnings == ()


@pytest.mark.promise("agent-environment")
@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"HOME": "/tmp/x"}, "HOME"),
        ({"HOME": HOME, "XDG_CONFIG_HOME": "/tmp/x"}, "XDG_CONFIG_HOME"),
        ({"HOME": HOME, "XDG_STATE_HOME": "/tmp/x"}, "XDG_STATE_HOME"),
        ({"HOME": HOME, "THOUGHTGATE_STATE_DIR": "/tmp/x"}, "THOUGHTGATE_STATE_DIR"),
    ],
)
def test_the_password_database_says_where_config_and_state_are(
    environ: dict[str, str], named: str
) -> None:
    found = agent_started(environ)
    assert found.config_home == f"{HOME}/.config"
    assert found.environ["THOUGHTGATE_STATE_DIR"] == STATE
    assert found.environ["HOME"] == environ["HOME"], "servers inherit it"
    assert f"ignored {named}: " in found.warnings[0]


def test_the_command_line_goes_before_both() -> None:
    environ = {"HOME": "/tmp/x", "XDG_CONFIG_HOME": "/y", "THOUGHTGATE_STATE_DIR": "/state"}
    found = agent_started(environ, config="/c.yaml", state_dir="/state")
    assert (found.config_home, found.environ["THOUGHTGATE_STATE_DIR"]) == ("", "/state")
    assert found.warnings == (), "what has no effect is not worth a warning"


def test_the_state_directory_must_be_an_absolute_path() -> None:
    with pytest.raises(UsageError, match="absolute"):
        agent_started({}, state_dir="state")


@pytest.mark.promise("agent-environment")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("default: ${D:-deny}", "default"),
        ('default: "\\x24{D:-deny}"', "default"),
        ("profile: ${D}", "profile"),
        ("rules: [{tool: '${D:-x}', action: forward}]", "rules[0].tool"),
        ("cedar: {policies: ['${D}/p.cedar']}", "cedar.policies[0]"),
        ("audit: {file: '${D}'}", "audit.file"),
        ("servers: {s: {expose: {allow: ['${D}']}}}", "servers.s.expose.allow[0]"),
    ],
)
def test_no_variable_decides_a_value_of_the_policy(text: str, key: str) -> None:
    (found,) = find_chosen_values(text, "p.yaml", {"D": "forward"}, ParsedDocuments())
    assert (found.key, found.line) == (key, 1)
    assert "refers to the variable D" in found.message
    assert list(find_chosen_values(text, "p.yaml", {}, ParsedDocuments())) == []


def test_servers_and_telemetry_may_refer_to_variables() -> None:
    text = "servers: {s: {url: '${D}', headers: {A: '${D}'}}}\ntelemetry: {otlp: '${D}'}\n"
    assert list(find_chosen_values(text, "p.yaml", {"D": "x"}, ParsedDocuments())) == []
