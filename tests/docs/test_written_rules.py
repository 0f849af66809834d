"""The rules that the documentation teaches hold: against paths, arrays, spellings and keys."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.doc_blocks import FENCE, write_files
from tools.docs import ROOT

from thoughtgate.analysis.lint import lint
from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.config.parse import parse
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Call
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.policy import Policy

GUIDE: Final = ROOT / "docs" / "guides" / "writing-rules.md"
PATHS: Final = re.compile(r"`([^`]+)`")


def _policy(text: str) -> Policy:
    settings = load_settings(text, file="t.yaml", env={}, read_text=lambda _: "")
    assert lint(settings, parse(text, file="t.yaml"), "t.yaml") == []
    return build_policy(settings)


def _guide(name: str, tmp_path: Path) -> Policy:
    write_files(GUIDE, tmp_path)
    return _policy((tmp_path / name).read_text("utf-8"))


def _yaml_block(page: Path, words: str) -> str:
    blocks = (found["body"] for found in FENCE.finditer(page.read_text("utf-8")))
    return next(body for body in blocks if words in body)


def _tool(policy: Policy, tool: str, arguments: dict[str, Any]) -> str:
    return evaluate(Call("files", "tool", tool, arguments), policy, 0.0).action


def _resource(policy: Policy, uri: str) -> str:
    return evaluate(Call("files", "resource", uri, {}), policy, 0.0).action


HIDDEN: Final = [".env", "a/.env", "./.env", "a/../.env", "/home/me/.ssh/id_rsa", "a\\.env", ".ENV"]
SYSTEM: Final = ["/etc/passwd", "/tmp/../etc/passwd", "//etc/x", "/ETC/passwd", "/etc./x", "/root"]
PLAIN: Final = ["notes.txt", "/tmp/a/b.txt", "src/main.py"]


@pytest.mark.promise("taught-rules")
@pytest.mark.parametrize("path", [*HIDDEN, *SYSTEM])
def test_the_denying_rules_of_the_guide_hold(path: str, tmp_path: Path) -> None:
    policy = _guide("deny.yaml", tmp_path)

    assert _tool(policy, "read_file", {"path": path}) == DENY
    assert _tool(policy, "read_file", {"path": "x.txt", "Path": path}) == DENY
    assert _tool(policy, "read_file", {"PATH": path}) == DENY
    assert _tool(policy, "read_many", {"paths": ["x.txt", path]}) == DENY
    assert _tool(policy, "read_many", {"paths": path}) == DENY
    if path in HIDDEN:
        assert _tool(policy, "edit", {"edits": [{"path": "x"}, {"path": path}]}) == DENY


def test_the_denying_rules_of_the_guide_let_honest_calls_through(tmp_path: Path) -> None:
    policy = _guide("deny.yaml", tmp_path)

    # Whether a relative path leads to /etc, only the server knows.
    absolute = [path for path in PLAIN if path.startswith("/")]
    assert {_tool(policy, "read_file", {"path": path}) for path in absolute} == {FORWARD}
    assert _tool(policy, "read_many", {"paths": absolute}) == FORWARD
    assert _tool(policy, "transfer", {"amount": 5}) == FORWARD
    assert _tool(policy, "transfer", {"Amount": 5000}) == DENY
    assert _resource(policy, "file:///tmp/x") == FORWARD
    for uri in ("file:/etc/passwd", "file://localhost/root/x", "file:///tmp/%2e%2e/etc/passwd"):
        assert _resource(policy, uri) == DENY


@pytest.mark.promise("taught-rules")
@pytest.mark.parametrize("path", [*HIDDEN, *SYSTEM, "/srv/Work/x", "/srv/work/..\\..\\x", "~/x"])
def test_the_allowing_rules_of_the_guide_hold(path: str, tmp_path: Path) -> None:
    policy = _guide("allow.yaml", tmp_path)

    assert _tool(policy, "read_file", {"path": path}) == DENY
    assert _tool(policy, "read_file", {"path": "/srv/work/x", "pAth": path}) == DENY
    assert _tool(policy, "read_multiple_files", {"paths": ["/srv/work/x", path]}) == DENY
    assert _tool(policy, "read_multiple_files", {"paths": []}) == DENY
    assert _resource(policy, f"file://{path}") == DENY
    assert _tool(policy, "read_file", {"path": "/srv/work/x"}) == FORWARD
    assert _tool(policy, "read_multiple_files", {"paths": ["/srv/work/x"]}) == FORWARD
    assert _resource(policy, "file:///srv/work/x") == FORWARD


def test_the_table_of_the_guide_is_true() -> None:
    rows = [line for line in GUIDE.read_text("utf-8").splitlines() if line.startswith("| `path:")]
    assert len(rows) == 4
    for row in rows:
        _, written, matching, missing, _ = row.split("|")
        (condition,) = PATHS.findall(written)
        rule = f"schema: 1\ndefault: forward\nrules: [{{tool: x, when: {{{condition}}}, action: deny}}]"
        settings = load_settings(rule, file="t.yaml", env={}, read_text=lambda _: "")
        policy = build_policy(settings)
        assert {_tool(policy, "x", {"path": path}) for path in PATHS.findall(matching)} == {DENY}
        assert {_tool(policy, "x", {"path": path}) for path in PATHS.findall(missing)} == {FORWARD}


@pytest.mark.promise("taught-rules")
@pytest.mark.parametrize("path", HIDDEN)
def test_the_first_rule_of_the_tutorial_holds(path: str) -> None:
    rules = _yaml_block(ROOT / "docs" / "getting-started.md", "no-dotfiles")
    policy = _policy(f"schema: 1\ndefault: forward\n{rules}")

    assert _tool(policy, "read_file", {"path": path}) == DENY
    assert _tool(policy, "read_files", {"paths": [path]}) == DENY
    assert _tool(policy, "read_files", {"Paths": ["x.txt", path]}) == DENY
    for plain in PLAIN:
        assert _tool(policy, "read_file", {"path": plain}) == FORWARD


@pytest.mark.promise("taught-rules")
@pytest.mark.parametrize("path", [*HIDDEN, *SYSTEM])
def test_the_rules_of_the_readme_hold(path: str) -> None:
    policy = _policy(_yaml_block(ROOT / "README.md", "schema: 1"))

    assert _tool(policy, "write_file", {"path": "/tmp/x"}) == FORWARD
    assert _tool(policy, "write_file", {"path": path}) == APPROVE
    assert _tool(policy, "write_file", {"path": "/tmp/x", "Path": path}) == APPROVE
