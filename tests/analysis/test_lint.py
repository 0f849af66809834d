"""Mistakes that a valid config can still hold."""

import pytest

from thoughtgate.analysis import lint as lint_module
from thoughtgate.analysis.lint import lint
from thoughtgate.config.load import load_settings
from thoughtgate.config.parse import parse
from thoughtgate.policy.starter import STARTER_TEXT


def findings(text: str) -> list[tuple[str, str, int]]:
    settings = load_settings(
        text, file="t.yaml", env={}, read_text=lambda _: "permit(principal, action, resource);"
    )
    found = lint(settings, parse(text, file="t.yaml"), "t.yaml")
    return [(one.level, one.problem.key, one.problem.line) for one in found]


def rules(*lines: str) -> list[tuple[str, str, int]]:
    text = "schema: 1\ndefault: deny\nrules:\n" + "".join(f"- {line}\n" for line in lines)
    return findings(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{action: forward}", "{tool: x, action: deny}"),
        ('{tool: "*", action: forward}', "{tool: x, action: deny}"),
        ('{tool: "a*", action: forward}', '{tool: ["abc", "ab*"], action: deny}'),
        ("{tool: x, action: forward}", "{tool: x, server: s, when: {a: 1}, action: deny}"),
        ("{server: s, action: forward}", "{tool: x, server: s, action: deny}"),
        ("{words: [a, b], action: forward}", "{words: [a], action: deny}"),
        ("{tool: x, when: {a: 1}, action: deny}", "{tool: x, when: {a: 1}, action: deny}"),
        ("{tool: '*[ab]', action: forward}", "{tool: '*[ab]', action: deny}"),
        ("{tool: [y, x], action: forward}", "{tool: [x, y], action: deny}"),
        ("{tool: [y, 'x*'], action: forward}", "{tool: [xx, y], action: deny}"),
    ],
)
def test_a_rule_behind_a_wider_one_can_never_match(first: str, second: str) -> None:
    assert rules(first, second) == [("error", "rules[1]", 5)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("{tool: x, action: forward}", '{tool: "*", action: deny}'),
        ("{tool: '*', action: forward}", "{resource: x, action: deny}"),
        ("{tool: '*', action: forward}", "{action: deny}"),
        ("{tool: x, when: {a: 1}, action: forward}", "{tool: x, action: deny}"),
        ("{tool: x, server: s, action: forward}", "{tool: x, action: deny}"),
        ("{tool: x, server: s, action: forward}", "{tool: x, server: t, action: deny}"),
        ("{words: [a], action: forward}", "{tool: a, action: deny}"),
        ("{tool: 'a*b', action: forward}", "{tool: 'a*', action: deny}"),
        ("{tool: x, when: {a: 1}, action: forward}", "{tool: x, when: {a: 1}, action: deny}"),
        ("{annotations: {d: true}, action: deny}", "{tool: x, action: forward}"),
    ],
)
def test_a_rule_that_may_match_is_left_alone(first: str, second: str) -> None:
    assert rules(first, second) == []


def test_the_first_rule_that_takes_every_call_is_named() -> None:
    lines = (
        "{tool: 'x*', action: forward}",
        "{tool: x, action: deny}",
        "{tool: x, action: approve}",
    )
    text = "schema: 1\ndefault: deny\nrules:\n" + "".join(f"- {line}\n" for line in lines)
    for config in (text, text.replace("'x*'", "x")):
        settings = load_settings(config, file="t.yaml", env={}, read_text=lambda _: "")
        found = lint(settings, parse(config, file="t.yaml"), "t.yaml")

        assert ["(forward)" in one.problem.message for one in found] == [True, True]


def test_comparing_many_rules_ends_and_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = [f"{{tool: t{number}, action: deny}}" for number in range(12)]
    monkeypatch.setattr(lint_module, "MAX_COMPARED", 10)

    assert rules(*exact, "{tool: t3, action: forward}") == [("error", "rules[12]", 16)]
    assert rules(*[one.replace("t1", "'t1*'") for one in exact][:5]) == []
    patterns = [f"{{tool: 't{number}_*', action: deny}}" for number in range(6)]
    assert rules(*patterns) == [("warning", "rules[5]", 9)]


def test_a_server_that_only_an_agents_config_has_is_no_mistake() -> None:
    text = "schema: 1\ndefault: deny\nservers: {a: {}, '*': {}}\nrules: [{server: files, action: deny}]\n"
    assert findings(text) == []


def test_listed_servers_and_globs_are_known() -> None:
    text = "schema: 1\ndefault: deny\nservers: {a: {}, '*': {}}\nrules: [{server: [a, 'b*'], action: deny}]\n"
    assert findings(text) == []


def test_a_rule_may_lie_behind_several() -> None:
    assert (
        rules("{tool: a, action: deny}", "{tool: b, action: deny}", "{tool: [a, b], action: deny}")
        == []
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            "default: deny\nservers: {github: {}, '*': {}}\nrules: [{server: githb, action: deny}]",
            "rules[0].server",
        ),
        (
            "default: deny\nservers: {github: {}, '*': {}}\nlimits: [{server: githb, budget: 1}]",
            "limits[0].server",
        ),
        ("default: deny\ncedar: {policies: [p]}", "cedar"),
        ("default: forward", "default"),
        ("default: deny\nprofile: development", "profile"),
        ("default: deny\napproval: {a: {on_timeout: approve}}", "approval.a.on_timeout"),
        ("default: deny\nrules: [{tool: a, action: forward, scope: w}]", "rules[0].scope"),
    ],
)
def test_what_is_doubtful_is_a_warning(text: str, key: str) -> None:
    [(level, found, line)] = findings(f"schema: 1\n{text}\n")
    assert (level, found) == ("warning", key)
    assert line > 1


@pytest.mark.parametrize(
    ("limit", "store", "key"),
    [
        ("{budget: 5}", "sqlite", ""),
        ("{budget: 5/1d, exact: true}", "postgresql://gate@db/gate", ""),
        ("{rate: 5/m, exact: true}", "sqlite", ""),
        ("{budget: 5}", "postgresql://gate@db/gate", "limits[0].budget"),
        ("{duplicate: 5s, exact: true}", "sqlite", "limits[0].exact"),
    ],
)
def test_limits_that_have_no_effect_or_no_end_are_doubtful(
    limit: str, store: str, key: str
) -> None:
    text = f"schema: 1\ndefault: deny\nlimits:\n- {limit}\nstore: {store}\n"
    assert findings(text) == ([("warning", key, 4)] if key else [])


def test_the_starter_policy_has_no_faults() -> None:
    assert findings(STARTER_TEXT) == []


def test_a_default_that_stands_nowhere_has_no_line() -> None:
    text = "schema: 1\ndefault: deny\n"
    settings = load_settings(
        text, file="t", env={"THOUGHTGATE_PROFILE": "development"}, read_text=lambda _: ""
    )
    assert [one.problem.line for one in lint(settings, parse(text, file="t"), "t")] == [0]


def test_scopes_are_fine_where_agents_have_tokens() -> None:
    listen = "{transport: http, auth: {type: jwt, jwks_url: https://h/k, issuer: i, audience: a}}"
    rule = "{tool: a, action: forward, scope: [tools:write]}"
    assert findings(f"schema: 1\ndefault: deny\nrules: [{rule}]\nlisten: {listen}\n") == []


def test_a_fact_that_no_server_provides_is_named() -> None:
    found = rules("{when_facts: [untrusted, outbound], action: deny}")
    assert [one[:2] for one in found] == [("warning", "rules[0].when_facts")]


def test_a_rule_for_more_facts_is_behind_one_for_fewer() -> None:
    wide = "{when_facts: [private], action: deny}"
    narrow = "{when_facts: [private, untrusted], action: deny}"
    assert any(level == "error" for level, *_ in rules(wide, narrow))
    assert not any(level == "error" for level, *_ in rules(narrow, wide))
