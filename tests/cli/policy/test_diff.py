from pathlib import Path

import pytest
from tests.support.audit_cli import Done, command, sample_record

OLD = """\
schema: 1
default: deny
rules:
  - {tool: read_file, action: forward}
  - {tool: "delete_*", action: approve, approval: ops}
limits:
  - {id: slow, tool: read_file, rate: 10/m}
approval:
  ops: {channel: console, timeout: 5m, required: 2, approvers: [kim, ada]}
"""
NEW = """\
schema: 1
default: deny
rules:
  - {tool: read_file, action: deny}
  - {tool: "delete_*", action: forward}
limits:
  - {id: slow, tool: read_file, rate: 90/m}
approval:
  ops: {channel: console, timeout: 9m, required: 1, on_timeout: approve, remember: false}
"""


def diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, *flags: str
) -> Done:
    (tmp_path / "old.yaml").write_text(old)
    (tmp_path / "new.yaml").write_text(new)
    return command(
        capsys, "policy", "diff", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"), *flags
    )


def test_what_loosens_and_what_tightens_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = diff(tmp_path, capsys, OLD, NEW)
    assert done.code == 0
    loosened, _, tightened = done.out.partition("TIGHTENS")
    for part in (
        "tool delete_x: HOLD (ops) -> ALLOW",
        "limit slow",
        "approval.ops.on_timeout: deny -> approve",
        "approval.ops.required: 2 -> 1",
        "approval.ops.approvers",
    ):
        assert part in loosened
    assert "tool read_file: ALLOW -> BLOCK" in tightened
    assert "approval.ops.remember: true -> false" in tightened


def test_the_other_way_round_it_tightens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = diff(tmp_path, capsys, NEW, OLD, "--json").json
    effects = {change["subject"]: change["effect"] for change in changes}
    assert effects["approval.ops.required"] == "tightens"
    assert effects["approval.ops.approvers"] == "tightens"
    assert effects["approval.ops.on_timeout"] == "tightens"
    assert effects["approval.ops.timeout_s"] == "changes"


def test_a_change_that_loosens_can_fail_a_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert diff(tmp_path, capsys, OLD, NEW, "--fail-on-loosen").code == 1
    same = diff(tmp_path, capsys, OLD, OLD, "--fail-on-loosen")
    assert same.code == 0
    assert same.out.startswith("No changes")


BARE = "schema: 1\ndefault: forward\n"
GUARDED = (
    BARE
    + """\
rules:
  - {tool: write_file, action: deny, when: {content: {contains: sk-}}}
  - {tool: run, action: deny, when: {cmd: {matches: ^rm}}}
"""
)


def test_denials_by_argument_that_are_gone_fail_a_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = diff(tmp_path, capsys, GUARDED, BARE, "--fail-on-loosen")
    assert done.code == 1
    assert done.out.startswith("LOOSENS (2)\n")
    back = diff(tmp_path, capsys, BARE, GUARDED, "--fail-on-loosen")
    assert back.code == 0
    assert back.out.startswith("TIGHTENS (2)\n")


def test_what_cannot_be_told_fails_a_build_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = GUARDED.replace("^rm", "^sudo")
    done = diff(tmp_path, capsys, GUARDED, other, "--fail-on-loosen")
    assert done.code == 1
    assert done.out.startswith("CANNOT BE TOLD (1)\n")
    assert "Cannot tell" in done.err
    assert diff(tmp_path, capsys, GUARDED, other).code == 0


def test_tools_on_record_are_probed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = "schema: 1\ndefault: deny\n"
    new = "schema: 1\ndefault: deny\nrules:\n  - {words: [wipe], kind: tool, action: forward}\n"
    record = str(sample_record(tmp_path))
    done = diff(tmp_path, capsys, old, new, "--record", record)
    assert "files: tool wipe, wipe_it: BLOCK -> ALLOW" in done.out


def test_cedar_files_that_change_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = "schema: 1\ndefault: policy\ncedar: {policies: [NAME]}\n"
    (tmp_path / "a.cedar").write_text("permit(principal, action, resource);\n")
    (tmp_path / "b.cedar").write_text("forbid(principal, action, resource);\n")
    old, new = base.replace("NAME", "a.cedar"), base.replace("NAME", "b.cedar")
    changes = diff(tmp_path, capsys, old, new, "--json").json
    told = {change["subject"]: (change["effect"], change["after"]) for change in changes}
    assert told["cedar a.cedar"] == ("cannot_be_told", "gone")
    assert told["cedar b.cedar"] == ("cannot_be_told", "other text")
    assert told["any other server: any other tool"] == ("tightens", "BLOCK")


def test_settings_are_told_as_json_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = diff(tmp_path, capsys, OLD, NEW, "--json").json
    told = {change["subject"]: (change["before"], change["after"]) for change in changes}
    assert told["approval.ops.approvers"] == (["kim", "ada"], [])
    assert told["approval.ops.remember"] == (True, False)
    assert told["approval.ops.timeout_s"] == (300, 540)
    out = diff(tmp_path, capsys, OLD, NEW).out
    assert 'approval.ops.approvers: ["kim", "ada"] -> []' in out
    assert "approval.ops.timeout_s: 300 -> 540" in out


def test_a_guard_beside_the_rules_that_is_gone_fails_a_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = BARE + "audit: {on_failure: continue}\n"
    done = diff(tmp_path, capsys, BARE, new, "--fail-on-loosen")
    assert done.code == 1
    assert done.out == "LOOSENS (1)\n  audit.on_failure: refuse -> continue\n"


def test_the_profile_that_only_reports_fails_a_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = BARE + "profile: development\n"
    done = diff(tmp_path, capsys, BARE, new, "--fail-on-loosen")
    assert done.code == 1
    assert "  profile: production -> development\n" in done.out


def test_secrets_of_servers_are_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = (
        BARE
        + "servers: {a: {command: a, args: [--token, first-value], env: {A_TOKEN: one-old-value}}}\n"
    )
    new = (
        BARE
        + "servers: {a: {command: a, args: [--token, other-value], env: {A_TOKEN: one-new-value}}}\n"
    )
    for flags in ((), ("--json",)):
        done = diff(tmp_path, capsys, old, new, *flags)
        assert "servers.a.args" in done.out
        assert "servers.a.env.A_TOKEN" in done.out
        assert "-value" not in done.out


def test_changes_that_differ_in_one_word_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "schema: 1\ndefault: forward\n"
    rule = "{kind: tool, words: [drop, rm, wipe], action: deny}"
    new = f"{old}rules:\n  - {rule}\n"
    line = "  any other server: tool drop_it, rm_it, wipe_it: "
    assert diff(tmp_path, capsys, new, old).out == f"LOOSENS (3)\n{line}BLOCK -> ALLOW\n"
    assert diff(tmp_path, capsys, old, new).out == f"TIGHTENS (3)\n{line}ALLOW -> BLOCK\n"
    assert len(diff(tmp_path, capsys, old, new, "--json").json) == 3


def test_a_rule_is_added_or_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "when content contains 'sk-': removed\n" in diff(tmp_path, capsys, GUARDED, BARE).out
    assert "when content contains 'sk-': added\n" in diff(tmp_path, capsys, BARE, GUARDED).out


def test_changes_with_different_effects_do_not_share_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = "schema: 1\ndefault: deny\n"
    new = old + "rules:\n  - {tool: one, action: forward}\n  - {tool: two, action: approve}\n"
    lines = diff(tmp_path, capsys, old, new).out.splitlines()
    assert "  any other server: tool one: BLOCK -> ALLOW" in lines
    assert "  any other server: tool two: BLOCK -> HOLD (default)" in lines
