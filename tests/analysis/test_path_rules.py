"""Rules on paths that miss a bare name or an array are named."""

import pytest

from thoughtgate.analysis.path_rules import path_findings
from thoughtgate.config.load import load_settings


def texts(*rules: str) -> list[str]:
    text = "schema: 1\ndefault: deny\nrules:\n" + "".join(f"- {rule}\n" for rule in rules)
    settings = load_settings(text, file="t.yaml", env={}, read_text=lambda _: "")
    return [message for _, message in path_findings(settings.rules)]


IN_LISTS = "{tool: '*', when: {paths: {any: {glob: ['.*', '*/.*']}}}, action: deny}"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("{tool: read, when: {path: {glob: '*/.*'}}, action: deny}", "'*/.*' misses '.x'"),
        ("{tool: read, when: {path: {glob: ['*/.env']}}, action: approve}", "misses '.env'"),
        ("{tool: read, when: {x: {any: {glob: '*/.?nv'}}}, action: deny}", "misses '.xnv'"),
        ("{tool: '*', when: {path: {under: /etc}}, action: deny}", "such as paths"),
        ("{server: fs, when: {file: {matches: x}}, action: deny}", "such as files"),
        ("{tool: '*', when: {'a.directory': {under: /etc}}, action: approve}", "directories"),
        ("{tool: read, when: {paths: {glob: '.*'}}, action: deny}", "write paths: {any: {glob"),
        ("{tool: read, when: {'x.files': {under: /a}}, action: forward}", "x.files: {any: {under"),
    ],
)
def test_a_rule_that_misses_something_is_named(rule: str, words: str) -> None:
    (found,) = texts(rule)

    assert words in found


@pytest.mark.parametrize(
    "rules",
    [
        ["{tool: '*', when: {path: {glob: ['.*', '*/.*']}}, action: deny}", IN_LISTS],
        ["{tool: '*', when: {path: {glob: '*'}}, action: deny}", IN_LISTS],
        ["{tool: read, when: {path: {under: /etc}}, action: deny}"],
        ["{tool: '*', when: {path: {under: /etc}}, action: forward}"],
        ["{tool: '*', when: {path: {glob: '*/.*'}}, action: forward}"],
        ["{tool: '*', when: {path: /etc/passwd, amount: {gt: 5}}, action: deny}"],
        ["{tool: '*', when: {branch: {glob: 'release/*'}}, action: deny}"],
        ["{tool: '*', action: deny}"],
    ],
)
def test_rules_that_miss_nothing_are_fine(rules: list[str]) -> None:
    assert texts(*rules) == []
