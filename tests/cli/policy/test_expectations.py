from pathlib import Path

import pytest
from tests.support.audit_cli import Done, command

CONFIG = """\
schema: 1
default: deny
rules:
  - {id: large, tool: transfer, when: {amount: {gt: 100}}, action: approve}
  - {id: small, tool: transfer, action: forward}
  - {tool: audit, action: forward, scope: [a, b]}
"""


def run_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, *flags: str) -> Done:
    config, tests = tmp_path / "thoughtgate.yaml", tmp_path / "tests.yaml"
    config.write_text(CONFIG)
    tests.write_text(text)
    return command(capsys, "policy", "test", str(tests), "-c", str(config), *flags)


def test_expectations_that_hold_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
tests:
  - {name: large ones ask, tool: transfer, arguments: {amount: 500}, expect: approve, rule: large, workflow: default}
  - {server: bank, tool: transfer, arguments: {amount: 5}, expect: forward, gate: rules}
  - {resource: "file:///etc/passwd", expect: deny}
  - {prompt: hello, expect: deny}
  - {tool: audit, expect: deny, kind: insufficient_scope}
  - {tool: audit, scopes: [a, b], expect: forward}
"""
    done = run_tests(tmp_path, capsys, text)
    assert done.code == 0
    assert "6 of 6 as expected" in done.out
    assert "ok    large ones ask" in done.out


def test_expectations_that_fail_are_named_with_their_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "tests:\n  - {tool: transfer, expect: deny}\n  - {tool: other, expect: deny}\n"
    done = run_tests(tmp_path, capsys, text)
    assert done.code == 1
    assert "FAIL  tool transfer of any server" in done.out
    assert "tests.yaml:2: action is forward, not deny" in done.out
    assert "1 of 2 as expected" in done.out
    listed = run_tests(tmp_path, capsys, text, "--json")
    assert listed.code == 1
    assert [one["passed"] for one in listed.json] == [False, True]


def test_a_wrong_file_lists_every_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """\
tests:
  - {tool: a, prompt: b, expect: deny}
  - {tool: a, expect: maybe}
  - {tool: a, expect: deny, argumentz: {}}
  - {tool: a, expect: deny, arguments: [], server: 7}
  - nothing
  - {tool: a, expect: deny, gate: rulez}
  - {tool: a, expect: deny, gate: [rules]}
  - {tool: a, expect: deny, scopes: all}
"""
    done = run_tests(tmp_path, capsys, text)
    assert done.code == 2
    assert done.out == ""
    for key in (
        "tests[0]: give exactly one of",
        "tests[1].expect",
        "tests[2].argumentz",
        "tests[3].arguments",
        "tests[3].server",
        "tests[4]",
        "tests[5].gate: must be one of visibility, rules, default, cedar, internal",
        "tests[6].gate: must be a string",
        "tests[7].scopes: must be a list of strings",
    ):
        assert key in done.err
    assert "tests.yaml:3" in done.err


@pytest.mark.parametrize("text", ["tests: []\n", "other: 1\n", "tests: {}\n", "", "{{\n"])
def test_a_file_without_tests_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    done = run_tests(tmp_path, capsys, text)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(CONFIG)
    missing = command(capsys, "policy", "test", str(tmp_path / "no.yaml"), "-c", str(config))
    assert missing.code == 2
    assert "no.yaml" in missing.err
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    odd = command(capsys, "policy", "test", str(tmp_path / "bytes.yaml"), "-c", str(config))
    assert odd.code == 2
    assert "UTF-8" in odd.err


@pytest.mark.parametrize(("text", "told"), [("", "the file is empty"), ("- 1\n", "must hold keys")])
def test_a_file_without_expectations_is_told_how_they_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file = tmp_path / "expectations.yaml"
    file.write_text(text)
    done = command(capsys, "policy", "test", str(file))
    assert done.code == 2
    assert told in done.err
    assert "tests: [{" in done.err
    assert "init" not in done.err
    assert "schema" not in done.err


def test_a_wrong_config_has_the_exit_code_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thoughtgate.yaml").write_text("schema: 1\n")
    place = str(tmp_path / "thoughtgate.yaml")
    assert command(capsys, "policy", "test", str(tmp_path / "no.yaml"), "-c", place).code == 1


def test_facts_are_part_of_an_expectation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, tests = tmp_path / "facts.yaml", tmp_path / "tests.yaml"
    config.write_text(
        "schema: 1\ndefault: forward\nservers: {web: {provides: [untrusted]}}\n"
        "rules: [{id: no, when_facts: [untrusted, outbound], action: deny}]\n"
    )
    tests.write_text(
        "tests:\n  - {server: web, tool: t, facts: [untrusted], expect: deny, rule: no}\n"
        "  - {server: web, tool: t, expect: forward}\n"
    )
    assert command(capsys, "policy", "test", str(tests), "-c", str(config)).code == 0
    tests.write_text("tests: [{server: web, tool: t, facts: [outbound], expect: deny}]")
    done = command(capsys, "policy", "test", str(tests), "-c", str(config))
    assert done.code == 2
    assert "must be a list of untrusted and private" in done.err


def test_a_call_can_be_made_at_another_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cedar = "permit(principal, action, resource) when { context.time.hour < 12 };"
    (tmp_path / "p.cedar").write_text(cedar)
    config, tests = tmp_path / "t.yaml", tmp_path / "e.yaml"
    config.write_text("schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n")
    entry = "  - {server: s, tool: t, at: '2026-01-31T%s:00:00Z', expect: %s}\n"
    tests.write_text("tests:\n" + entry % ("09", "forward") + entry % ("13", "deny"))

    assert command(capsys, "policy", "test", str(tests), "-c", str(config)).code == 0


@pytest.mark.parametrize("at", ["soon", "2026", "12:00"])
def test_a_time_that_cannot_be_read_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str
) -> None:
    done = run_tests(tmp_path, capsys, f"tests: [{{tool: t, at: '{at}', expect: deny}}]\n")

    assert done.code == 2
    assert "must be a time in quotes" in done.err
