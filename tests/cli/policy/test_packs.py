"""Policy packs: every one holds what its expectations say, alone and together with the others."""

import time
from itertools import combinations
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm

from thoughtgate.analysis.lint import lint
from thoughtgate.cli.policy.expectations import check, load_expectations
from thoughtgate.cli.policy.packs import (
    PACKS,
    compose_config,
    compose_expectations,
    read_pack,
    summaries,
)
from thoughtgate.config.build import build_policy
from thoughtgate.config.load import settings_of
from thoughtgate.config.parse import parse
from thoughtgate.errors import UsageError

CHOICES = [*((name,) for name in PACKS), *combinations(PACKS, 2), PACKS]


@pytest.mark.parametrize("names", CHOICES, ids="+".join)
def test_packs_hold_what_they_promise_alone_and_together(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    document = parse(compose_config(names), file="packs.yaml")
    settings = settings_of(document, file="packs.yaml", env={}, read_text=lambda _: "")
    assert lint(settings, document, "packs.yaml") == []
    policy = build_policy(settings)
    tests = tmp_path / "tests.yaml"
    tests.write_text(compose_expectations(names))
    results = [check(one, policy, time.time()) for one in load_expectations(tests)]
    failed = [(one.expectation.name, one.differs) for one in results if one.differs]
    assert failed == []
    assert len(results) >= 6 * len(names)


def test_every_pack_has_a_line_and_servers_of_its_own() -> None:
    assert tuple(summaries()) == PACKS
    servers = [
        line
        for name in PACKS
        for line in read_pack(name).servers.splitlines()
        if line.startswith("  ") and not line.startswith(("   ", "  #"))
    ]
    assert len(servers) == len(set(servers))


@pytest.mark.parametrize("name", PACKS)
def test_no_rule_is_lost(name: str) -> None:
    source = Path(__file__).parents[3] / "src" / "thoughtgate" / "packs" / f"{name}.yaml"
    text = source.read_text("utf-8")
    written = sum(line.startswith("  - id:") for line in text.splitlines())
    assert len(read_pack(name).rules) == written
    composed = compose_config([name])
    assert all(rule.strip() in composed for rule in read_pack(name).rules)


def test_rules_that_deny_come_before_the_ones_that_depend_on_facts() -> None:
    text = compose_config(["lethal-trifecta", "git"])
    assert text.index("git-option-as-end") < text.index("id: lethal-trifecta")
    assert text.index("id: lethal-trifecta") < text.index("id: git-reads")
    assert text.index("id: git-changes") < text.index("id: starter-destroys")


def test_an_unknown_pack_is_named() -> None:
    with pytest.raises(UsageError, match="there is no pack 'nope'"):
        compose_config(["git", "nope"])


def test_init_writes_a_config_and_its_expectations(tmp_path: Path) -> None:
    result = run_warm("init", "--pack", "git", "--pack", "lethal-trifecta", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    checked = run_warm(
        "policy", "test", "thoughtgate.tests.yaml", "-c", "thoughtgate.yaml", cwd=tmp_path
    )
    assert checked.returncode == 0, checked.stdout
    assert run_warm("validate-config", "-c", "thoughtgate.yaml", cwd=tmp_path).returncode == 0
    again = run_warm("init", "--pack", "git", cwd=tmp_path)
    assert again.returncode == 2
    assert "already exists" in again.stderr


def test_init_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.tests.yaml").write_text("mine")
    result = run_warm("init", "--pack", "git", cwd=tmp_path)
    assert result.returncode == 2
    assert "thoughtgate.tests.yaml already exists" in result.stderr
    assert not (tmp_path / "thoughtgate.yaml").exists()


def test_the_packs_are_listed(tmp_path: Path) -> None:
    text = run_warm("init", "--list-packs", cwd=tmp_path).stdout
    assert [line.split()[0] for line in text.splitlines()] == list(PACKS)
    assert not list(tmp_path.iterdir())
