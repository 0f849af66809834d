from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

import pytest

from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD
from thoughtgate.analysis.setting_changes import (
    EFFECTS,
    JUDGED_ELSEWHERE,
    JUDGED_WHOLE,
    compare_settings,
)
from thoughtgate.config.load import load_settings
from thoughtgate.config.settings import (
    ServerSettings,
    Settings,
    WorkflowSettings,
)

NAMED = {"servers": ServerSettings, "approval": WorkflowSettings}
LISTEN = "listen: {transport: http, %s}"
BEARER = LISTEN % "auth: {type: bearer, token_env: A}"
BOTH = LISTEN % "auth: {type: both, token_env: A, allow: [10.0.0.0/8]}"
ADDRESSES = LISTEN % "auth: {type: ip_allowlist, allow: [%s]}"
OPEN = LISTEN % "host: 0.0.0.0, auth: {type: bearer, token_env: A}, hosts: [%s]"
SERVER = "servers: {a: {%s}}"
WORKFLOW = "approval: {ops: {%s}}"


def settings(text: str) -> Settings:
    return load_settings(
        f"schema: 1\ndefault: deny\n{text}\n",
        file="test.yaml",
        env={},
        read_text=lambda name: f"permit(principal, action, resource); // {name}",
    )


def effects(old: str, new: str) -> dict[str, str]:
    return {one.subject: one.effect for one in compare_settings(settings(old), settings(new))}


def leaves(kind: Any, place: str = "") -> set[str]:
    """Return the keys of all settings that have no parts."""
    found = set()
    for name, hint in get_type_hints(kind).items():
        key = f"{place}.{name}" if place else name
        inner = NAMED.get(key) or next(filter(is_dataclass, (hint, *get_args(hint))), None)
        if key in JUDGED_ELSEWHERE | {"cedar"}:
            continue
        if key in JUDGED_WHOLE:
            inner = None
        found |= leaves(inner, key) if inner is not None else {key}
    return found


def test_every_setting_has_its_judge() -> None:
    assert leaves(Settings) <= EFFECTS.keys()
    assert {field.name for field in fields(Settings)} >= {key.split(".")[0] for key in EFFECTS}


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        ("", "audit: {on_failure: continue}", "audit.on_failure"),
        ("", "audit: {sink: stderr}", "audit.sink"),
        ("audit: {sign_key_env: KEY}", "", "audit.sign_key_env"),
        ("", "audit: {rotate: {keep: 3}}", "audit.rotate.keep"),
        ("", "audit: {preview: 10}", "audit.preview"),
        ("", "audit: {retain: 90d}", "audit.retain_s"),
        ("audit: {retain: 90d}", "audit: {retain: 30d}", "audit.retain_s"),
        ("", "audit: {ledger: false}", "audit.ledger"),
        ("audit: {fsync: true}", "", "audit.fsync"),
        ("", "reload: auto", "reload"),
        ("manager_tools: false", "", "manager_tools"),
        ("console: {enabled: false}", "", "console.enabled"),
        (BEARER, LISTEN % "port: 8080", "listen.auth"),
        (BOTH, BEARER, "listen.auth.type"),
        (ADDRESSES % "10.0.0.0/8", ADDRESSES % "10.0.0.0/8, 11.0.0.0/8", "listen.auth.allow"),
        ("", LISTEN % "port: 8080", "listen.transport"),
        (BEARER, OPEN % "", "listen.host"),
        (OPEN % "a.example", OPEN % "", "listen.hosts"),
        (LISTEN % "hosts: []", LISTEN % "hosts: [a.example]", "listen.hosts"),
        (LISTEN % "origins: []", LISTEN % "origins: [https://a.example]", "listen.origins"),
        (SERVER % "command: a, enabled: false", SERVER % "command: a", "servers.a.enabled"),
        (SERVER % "command: a, isolation: session", SERVER % "command: a", "servers.a.isolation"),
        (WORKFLOW % "required: 2", WORKFLOW % "required: 1", "approval.ops.required"),
        (WORKFLOW % "approvers: [a]", WORKFLOW % "approvers: [b]", "approval.ops.approvers"),
        (
            WORKFLOW % "on_timeout: approve, timeout: 9m",
            WORKFLOW % "on_timeout: approve, timeout: 1m",
            "approval.ops.timeout_s",
        ),
        (
            "servers: {a: {command: a}, b: {command: b}}\nnamespaces: {n: [a]}",
            "servers: {a: {command: a}, b: {command: b}}\nnamespaces: {n: [a, b]}",
            "namespaces.n",
        ),
    ],
)
def test_a_guard_that_is_taken_away_loosens(old: str, new: str, subject: str) -> None:
    assert effects(old, new) == {subject: LOOSENS}
    back = LOOSENS if subject == "approval.ops.approvers" else TIGHTENS
    assert effects(new, old) == {subject: back}


@pytest.mark.promise("no-blinding-reload")
@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        ("", 'redact: {patterns: [".*"]}', "redact.patterns"),
        ("redact: {patterns: [abc]}", "", "redact.patterns"),
        ("redact: {names: [a]}", "redact: {names: [a, b]}", "redact.names"),
        ("redact: {names: [a, b]}", "redact: {names: [a]}", "redact.names"),
    ],
)
def test_masking_more_hides_calls_and_masking_less_shows_secrets(
    old: str, new: str, subject: str
) -> None:
    assert effects(old, new) == {subject: LOOSENS}


def test_the_order_of_what_is_masked_does_not_matter() -> None:
    assert effects("redact: {names: [a, b]}", "redact: {names: [b, a]}") == {}


@pytest.mark.parametrize(
    ("old", "new", "subject"),
    [
        (SERVER % "command: a", SERVER % "command: b", "servers.a.command"),
        (SERVER % "command: a", SERVER % "command: a, args: [x]", "servers.a.args"),
        (SERVER % "command: a", SERVER % "command: a, env: {X: y}", "servers.a.env.X"),
        (SERVER % "url: http://127.0.0.1:1", SERVER % "url: http://127.0.0.1:2", "servers.a.url"),
        ("", SERVER % "command: a", "servers.a"),
        (BEARER, BEARER.replace("token_env: A", "token_env: B"), "listen.auth.token_env"),
        (WORKFLOW % "channel: console", WORKFLOW % "channel: terminal", "approval.ops.channel"),
        ("audit: {sign_key_env: KEY}", "audit: {sign_key_env: YEK}", "audit.sign_key_env"),
        ("", "audit: {file: other.jsonl}", "audit.file"),
        ("", "telemetry: {otlp: {endpoint: 'http://127.0.0.1:4318'}}", "telemetry.otlp"),
        ("cedar: {policies: [a.cedar]}", "cedar: {policies: [b.cedar]}", "cedar a.cedar"),
        (
            "servers: {a: {command: a}}",
            "servers: {a: {command: a}}\nnamespaces: {n: [a]}",
            "namespaces.n",
        ),
    ],
)
def test_what_nobody_can_weigh_cannot_be_told(old: str, new: str, subject: str) -> None:
    assert effects(old, new)[subject] == UNTOLD


@pytest.mark.parametrize(
    ("new", "subject"),
    [
        ("listen: {port: 9000}", "listen.port"),
        ("listen: {max_body: 2MiB}", "listen.max_body"),
        ("holds: 3", "holds.connection"),
        ("tasks: {ttl: 1m}", "tasks.ttl_s"),
        ("telemetry: {log_level: debug}", "telemetry.log_level"),
        ("reload: false", "reload"),
    ],
)
def test_what_guards_no_call_changes(new: str, subject: str) -> None:
    assert effects("", new) == {subject: CHANGES}


def test_another_order_is_no_change() -> None:
    one, other = WORKFLOW % "approvers: [a, b]", WORKFLOW % "approvers: [b, a]"
    assert effects(one, other) == {}


def test_a_server_that_is_gone_changes() -> None:
    assert effects(SERVER % "command: a", "") == {"servers.a": CHANGES}


def test_headers_are_told_by_their_names_only() -> None:
    old = settings(SERVER % "url: http://127.0.0.1:1, headers: {X-Key: first, X-Gone: gone}")
    servers = {"a": replace(old.servers["a"], headers={"X-Key": "second", "X-New": "new"})}
    told = {one.subject: one[2:] for one in compare_settings(old, replace(old, servers=servers))}
    assert told == {
        "servers.a.headers.X-Gone": ("there", "-"),
        "servers.a.headers.X-Key": ("there", "other value"),
        "servers.a.headers.X-New": ("-", "there"),
    }


def test_options_of_a_channel_are_compared_without_their_values() -> None:
    one = WorkflowSettings("a", channel="pigeon", options={"coop": "x", "ring": "secret"})
    other = WorkflowSettings("a", channel="pigeon", options={"coop": "x", "ring": "other"})
    (change,) = compare_settings(
        Settings("deny", approval={"a": one}), Settings("deny", approval={"a": other})
    )

    assert (change.effect, change.subject) == (UNTOLD, "approval.a.options.ring")
    assert "secret" not in str(change)


INSPECTED = "servers: {{a: {{command: x, {}}}}}"


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        ("results: {redact: [hard]}", "results: {block: [hard]}", TIGHTENS),
        ("results: {block: [hard]}", "results: {hold: [hard]}", LOOSENS),
        ("results: {block: [hard, soft]}", "results: {block: [hard]}", LOOSENS),
        ("results: {block: [hard]}", "eager: true", LOOSENS),
        ("eager: true", "results: {annotate: [soft]}", TIGHTENS),
        ("results: {block: [hard], redact: [hard]}", "results: {block: [hard]}", CHANGES),
    ],
)
def test_less_strict_treatments_of_results_loosen(old: str, new: str, effect: str) -> None:
    found = effects(INSPECTED.format(old), INSPECTED.format(new))
    assert found["servers.a.results"] == effect


def test_secrets_in_arguments_and_what_the_star_says() -> None:
    guarded = "arguments: {block_secrets: true}"
    found = effects(INSPECTED.format(guarded), INSPECTED.format("eager: true"))
    assert found["servers.a.arguments"] == LOOSENS
    found = effects(INSPECTED.format("eager: true"), INSPECTED.format(guarded))
    assert found["servers.a.arguments"] == TIGHTENS
    star = "servers: {{'*': {{results: {{block: [hard]}}}}, a: {{command: x{}}}}}"
    found = effects(star.format(""), star.format(", results: {}"))
    assert found["servers.a.results"] == LOOSENS


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        (SERVER % "provides: [untrusted]", SERVER % "provides: []", LOOSENS),
        (SERVER % "provides: []", SERVER % "provides: [private]", TIGHTENS),
        (SERVER % "timeout: 1s", SERVER % "timeout: 1s, outbound: [send]", LOOSENS),
        (SERVER % "outbound: [send]", SERVER % "timeout: 30s", TIGHTENS),
        (SERVER % "outbound: [send]", SERVER % "outbound: []", LOOSENS),
        (SERVER % "outbound: [send]", SERVER % "outbound: [send, post]", TIGHTENS),
        ("facts: {window: 2h}", "facts: {window: 1h}", LOOSENS),
        ("facts: {window: 1h}", "facts: {window: 2h}", TIGHTENS),
    ],
)
def test_fewer_facts_loosen(old: str, new: str, effect: str) -> None:
    subjects = ("servers.a.provides", "servers.a.outbound", "facts.window_s")
    found = {name: one for name, one in effects(old, new).items() if name in subjects}
    assert list(found.values()) == [effect]
