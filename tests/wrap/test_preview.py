"""``wrap --dry-run`` shows what would happen, also while a config is wrapped."""

from pathlib import Path

import pytest
from tests.support.wraps import Machine, entry


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    config = {"sample": entry(env={"TOKEN": "hush"})}
    made.write_config(config, path=made.home / ".claude.json")
    return made


def _preview(machine: Machine, *flags: str) -> str:
    done = machine.run("wrap", "--dry-run", *flags, "--", str(machine.stand_in("claude")), "-p")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_injection_is_shown_without_secrets_and_nothing_is_written(machine: Machine) -> None:
    shown = _preview(machine)

    assert "--strict-mcp-config -p" in shown
    assert "shim" in shown
    assert "hush" not in shown
    assert not list(machine.state.glob("injected/*"))


def test_a_rewrite_is_shown_as_a_diff(machine: Machine) -> None:
    shown = _preview(machine, "--rewrite")

    assert shown.startswith(f"--- {machine.home / '.claude.json'}")
    assert '+        "shim",' in shown


@pytest.mark.parametrize("flag", ["--inject", "--rewrite"])
def test_a_config_that_is_wrapped_already_is_shown_as_if_it_were_not(
    machine: Machine, flag: str
) -> None:
    before = _preview(machine, flag)
    with machine.wrap_stand_in("claude", flags=["--rewrite"]) as run:
        run.wait_until_ready()
        assert _preview(machine, flag) == before
        assert run.finish() == 0
