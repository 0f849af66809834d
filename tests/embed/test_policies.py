"""Policies for programs that embed the gate: loaded from files and texts, and judged by."""

from pathlib import Path

import pytest

from thoughtgate.embed.policies import judge, load_policy
from thoughtgate.errors import ConfigError, UsageError
from thoughtgate.policy.call import Call

CONFIG = """\
schema: 1
default: deny
servers:
  files: {expose: {block: ["admin_*"]}}
rules:
  - {id: reads, tool: "read_*", action: forward}
  - {id: deletes, tool: "delete_*", action: approve, reason: it deletes}
  - {resource: "file:///etc/*", action: deny}
  - {resource: "file://*", action: forward}
limits:
  - {id: none-left, tool: read_nothing, budget: 0}
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call("files", "tool", "read_file", {}), ("forward", "rules", "reads")),
        (Call("files", "tool", "delete_file", {}), ("approve", "rules", "deletes")),
        (Call("files", "tool", "format", {}), ("deny", "default", "default")),
        (Call("files", "tool", "admin_reset", {}), ("deny", "visibility", "")),
        (Call("files", "tool", "read_nothing", {}), ("deny", "limits", "none-left")),
        # As the gate does, by the strictest of its spellings.
        (Call("files", "resource", "file:///tmp/../etc/x", {}), ("deny", "rules", "rules[2]")),
    ],
)
def test_a_call_is_judged_by_all_gates(call: Call, expected: tuple[str, str, str]) -> None:
    verdict = judge(load_policy(text=CONFIG, environ={}), call)

    assert (verdict.action, verdict.gate, verdict.rule) == expected


def test_judging_counts_nothing() -> None:
    policy = load_policy(text=CONFIG.replace("budget: 0", "budget: 1"), environ={})
    call = Call("files", "tool", "read_nothing", {})

    assert [judge(policy, call, at=1.0).action for _ in range(3)] == ["forward"] * 3


def test_the_development_profile_forwards_and_says_what_it_would_do() -> None:
    policy = load_policy(text=CONFIG, environ={}, profile="development")
    verdict = judge(policy, Call("files", "tool", "format", {}))

    assert (verdict.action, verdict.enforced, verdict.kind) == (
        "forward",
        False,
        "governance_denied",
    )


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_file_is_loaded(tmp_path: Path, as_path: type) -> None:
    file = tmp_path / "thoughtgate.yaml"
    file.write_text(CONFIG, "utf-8")

    policy = load_policy(as_path(file), environ={})

    assert policy.version == load_policy(text=CONFIG, environ={}).version


def test_without_a_config_the_starter_policy_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert load_policy(environ={"HOME": str(tmp_path)}).starter
    assert not load_policy(text=CONFIG, environ={}).starter


def test_files_that_a_text_names_are_found_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.cedar").write_text("permit(principal, action, resource);", "utf-8")
    text = "{schema: 1, default: policy, cedar: {policies: [p.cedar]}}"

    assert judge(load_policy(text=text, environ={}), Call("s", "tool", "t", {})).gate == "cedar"


def test_a_wrong_config_says_what_is_wrong() -> None:
    with pytest.raises(ConfigError) as caught:
        load_policy(text="{schema: 1, default: perhaps}", environ={})
    assert [problem.key for problem in caught.value.problems] == ["default"]

    with pytest.raises(ValueError, match="not both"):
        load_policy("a.yaml", text=CONFIG)
    with pytest.raises(UsageError):
        load_policy(text=CONFIG, profile="relaxed")
