"""Loading: good configs give settings, bad ones every problem at once."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.config.call_counts import CallRate
from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import (
    BreakerSettings,
    Expose,
    SelectorSettings,
    Settings,
)
from thoughtgate.errors import ConfigError, Problem

FILES = {
    "policy.cedar": "permit(principal, action, resource);",
    "asking.cedar": '@approval("nobody") permit(principal, action, resource);',
    "broken.cedar": "permit(principal,\n  action;\n",
}

WHOLE = """
schema: 1
profile: production
default: deny
servers:
  filesystem:
    name: Filesystem
    command: npx
    args: ["-y", "server", "${ROOT:-/tmp}"]
    env: {NODE_ENV: production}
    expose: {allow: [read_file, "list_*"]}
    timeout: 45s
    idle: 10m
  search:
    url: https://example.com/mcp
    auth: {type: bearer, token_env: SEARCH_TOKEN}
    disabled: true
  "*": {expose: {block: ["admin_*"]}}
rules:
  - {tool: "delete_*", server: github, action: approve, approval: ops}
  - {id: big, tool: transfer, when: {amount: {gt: 100}}, action: approve, reason: large transfers}
  - {resource: "file:///etc/*", action: deny}
  - {kind: prompt, words: [Deploy], action: deny}
  - {tool: "*", server: [prod, stage], action: policy, redact: true}
cedar: {policies: [policy.cedar]}
limits:
  - {tool: "search_*", rate: 30/m}
  - {server: github, budget: 200, scope: session}
  - {duplicate: 30s, breaker: {failures: 3, cooldown: 1m}}
approval:
  ops:
    channel: slack
    slack: {channel: "#ops", token_env: OPS_TOKEN}
    approvers: [U0123, U0456]
    required: 2
    timeout: 10m
listen: {transport: http, host: 0.0.0.0, port: 8080, auth: {type: both, token_env: AGENT_TOKEN, allow: [10.0.0.0/8]}}
namespaces: {work: [filesystem, search], home: [filesystem]}
default_namespace: work
audit: {file: audit.jsonl, preview: 1KiB, rotate: {size: 1MiB, keep: 3}, sign_key_env: KEY}
store: postgresql://gate@localhost/d
holds: 8
tasks: {ttl: 1m}
telemetry: {log_level: debug, otlp: {endpoint: "http://localhost:4318"}}
"""


def load(text: str, env: dict[str, str] | None = None, file: str = "t.yaml") -> Settings:
    def read_text(path: str) -> str:
        if path == "binary.cedar":
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "x")
        if path not in FILES:
            raise FileNotFoundError(2, "No such file or directory", path)
        return FILES[path]

    return load_settings(text, file=file, env=env or {}, read_text=read_text)


def problems(text: str, env: dict[str, str] | None = None) -> dict[str, Problem]:
    with pytest.raises(ConfigError) as caught:
        load(text, env)
    return {problem.key: problem for problem in caught.value.problems}


def keys(more: str) -> dict[str, str]:
    found = problems(f"schema: 1\ndefault: deny\n{more}\n")
    return {key: problem.message for key, problem in found.items()}


def test_a_whole_config_becomes_settings() -> None:
    found = load(WHOLE, {"ROOT": "/data"})
    server = found.servers["filesystem"]
    assert server.args == ("-y", "server", "/data")
    assert server.expose == Expose("allow", ("read_file", "list_*"))
    assert (server.timeout_s, server.idle_s, server.start_timeout_s) == (45.0, 600.0, 10.0)
    assert not found.servers["search"].enabled
    assert found.rules[0].selector == SelectorSettings(("tool",), ("delete_*",), ("github",))
    assert [rule.id for rule in found.rules][:2] == ["rules[0]", "big"]
    assert found.rules[3].selector == SelectorSettings(("prompt",), words=("deploy",))
    assert found.rules[4].selector.servers == ("prod", "stage")
    assert found.limits[0].rate == CallRate(30, 60.0)
    assert found.limits[1].scope == "session"
    assert found.limits[2].breaker == BreakerSettings(3, 60.0, 60.0)
    assert set(found.approval) == {"default", "ops"}
    slack = found.approval["ops"].slack
    assert slack is not None
    assert slack.token_env == "OPS_TOKEN"
    assert found.listen.auth is not None
    assert found.listen.auth.allow == ("10.0.0.0/8",)
    assert found.namespaces == {"work": ("filesystem", "search"), "home": ("filesystem",)}
    assert (found.audit.preview, found.audit.rotate_size, found.audit.rotate_keep) == (
        1024,
        2**20,
        3,
    )
    assert found.holds.connection == 8
    assert found.tasks.ttl_s == 60.0
    assert found.telemetry.otlp is not None
    assert found.cedar[0].text == FILES["policy.cedar"]


def test_the_same_config_is_read_from_toml_and_json() -> None:
    toml = 'schema = 1\ndefault = "deny"\n[[rules]]\ntool = "x"\naction = "forward"\n'
    jsonc = (
        '{"schema": 1, "default": "deny", /* c */ "rules": [{"tool": "x", "action": "forward"}]}'
    )
    yaml = "schema: 1\ndefault: deny\nrules:\n- {tool: x, action: forward}\n"
    assert load(toml, file="a.toml") == load(jsonc, file="a.json") == load(yaml)


def test_a_pasted_mcp_servers_block_is_read() -> None:
    text = (
        'schema: 1\ndefault: deny\nmcpServers:\n  fs: {type: stdio, command: npx, args: ["-y"]}\n'
    )
    assert load(text).servers["fs"].command == "npx"


def test_both_spellings_of_servers_are_one_too_many() -> None:
    found = keys("servers: {a: {command: x}}\nmcpServers: {b: {command: y}}")
    assert "keep one" in found["mcpServers"]


def test_a_problem_below_a_pasted_block_has_its_line() -> None:
    found = problems("schema: 1\ndefault: deny\nmcpServers:\n  a:\n    comand: x\n")
    assert found["servers.a.comand"].line == 5


@pytest.mark.requirement("FR26")
def test_all_problems_are_told_at_once_with_key_line_and_remedy() -> None:
    found = problems(
        "schema: 1\ndefualt: deny\nservers:\n  a: {timeout: 30, url: '${GONE}'}\n"
        "rules:\n  - {action: approve, approval: nobody}\ncedar: {policies: [missing.cedar, broken.cedar]}\n"
    )
    assert {key: problem.line for key, problem in found.items()} == {
        "default": 0,
        "defualt": 2,
        "servers.a.timeout": 4,
        "servers.a.url": 4,
        "rules[0].approval": 6,
        "cedar.policies[0]": 7,
        "cedar.policies": 2,
    }
    assert found["defualt"].message == "unknown key; did you mean default?"
    assert found["cedar.policies"].file == "broken.cedar"
    assert str(found["servers.a.timeout"]).startswith(
        "t.yaml:4: servers.a.timeout: must be a duration"
    )


def test_an_unreadable_cedar_file_is_a_problem() -> None:
    found = keys("cedar: {policies: [binary.cedar]}")
    assert "not UTF-8" in found["cedar.policies[0]"]
    assert set(keys("cedar: {policies: [5, '']}")) == {"cedar.policies[0]", "cedar.policies[1]"}


def test_of_two_problems_with_one_key_the_first_is_told() -> None:
    found = keys("listen: {transport: http, auth: {type: bearer, token_env: ''}}")
    assert list(found) == ["listen.auth.token_env"]
    assert "name of an environment variable" in found["listen.auth.token_env"]


def test_a_workflow_that_only_cedar_names_must_exist() -> None:
    assert "approval.nobody" in keys("cedar: {policies: [asking.cedar]}")


def test_variables_of_the_environment_override_the_file() -> None:
    found = load(
        "schema: 1\ndefault: deny\nprofile: production\n", {"THOUGHTGATE_PROFILE": "development"}
    )
    assert found.profile == "development"
    upstream = {"THOUGHTGATE_UPSTREAM": "https://h/${x}"}
    assert load("schema: 1\ndefault: deny\n", upstream).servers["upstream"].url == "https://h/${x}"
    assert "THOUGHTGATE_LISTEN" in problems(
        "schema: 1\ndefault: deny\n", {"THOUGHTGATE_LISTEN": "x"}
    )


def test_a_substituted_value_cannot_change_the_structure() -> None:
    found = load(
        "schema: 1\ndefault: deny\nservers: {a: {command: '${C}'}}\n", {"C": "x\nrules: []\n# ', {"}
    )
    assert found.servers["a"].command == "x\nrules: []\n# ', {"


def test_a_secret_value_is_not_quoted_in_a_complaint() -> None:
    with pytest.raises(ConfigError) as caught:
        load(
            "schema: 1\ndefault: deny\nservers: {a: {url: https://h, headers: {Authorization: [hunter2x]}}}\n"
        )
    assert "hunter2x" not in str(caught.value)


def test_an_inline_token_is_refused_with_the_remedy() -> None:
    found = keys("servers: {a: {url: https://h/x, auth: {type: bearer, token: abc}}}")
    assert "token_env" in found["servers.a.auth.token"]
    assert "abc" not in found["servers.a.auth.token"]


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "schema",
                "default",
                "servers",
                "rules",
                "limits",
                "approval",
                "listen",
                "namespaces",
                "cedar",
                "audit",
                "store",
                "tasks",
                "telemetry",
                "holds",
            ]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.sampled_from(["x", "*", "deny", "http", "30s"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "a",
                            "tool",
                            "action",
                            "server",
                            "auth",
                            "type",
                            "url",
                            "policies",
                            "slack",
                            "channel",
                            "otlp",
                        ]
                    ),
                    inner,
                    max_size=3,
                )
            ),
            max_leaves=8,
        ),
        min_size=1,
    )
)
def test_any_data_gives_settings_or_a_config_error(data: dict[str, Any]) -> None:
    import json

    try:
        load(json.dumps(data), file="x.json")
    except ConfigError:
        return


def test_the_example_of_the_getting_started_page_loads() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "config.md"
    example = page.read_text("utf-8").split("```yaml\n")[1].split("```")[0]
    load(example, {"SEARCH_TOKEN": "x"})


@pytest.mark.parametrize(
    "text",
    [
        "servers: {a: {command: x, timeout: '${PW}'}}",
        "servers: {a: {command: x, expose: ['${PW}']}}",
        "listen: {auth: {type: ip_allowlist, allow: ['${PW}']}}",
    ],
)
def test_a_value_from_the_environment_is_never_quoted(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(
            f"schema: 1\ndefault: deny\n{text}\n",
            file="c.yaml",
            env={"PW": "hunter2"},
            read_text=str,
        )
    assert "not shown" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("rules: [{words: [], action: forward}]", "rules[0].words"),
        ("rules: [{words: [delete_file], action: deny}]", "rules[0].words[0]"),
        ("rules: [{tool: x, when: {'': 1}, action: deny}]", "rules[0].when"),
        ("rules: [{tool: x, when: {a..b: 1}, action: deny}]", "rules[0].when"),
    ],
)
def test_a_rule_that_means_everything_or_nothing_by_mistake_is_refused(text: str, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(f"schema: 1\ndefault: deny\n{text}\n", file="c.yaml", env={}, read_text=str)
    assert [one.key for one in caught.value.problems] == [key]


@pytest.mark.parametrize("version", ["true", "1.0"])
def test_a_version_is_the_number_one(version: str) -> None:
    with pytest.raises(ConfigError, match="schema"):
        load_settings(f"schema: {version}\ndefault: deny\n", file="c.yaml", env={}, read_text=str)
