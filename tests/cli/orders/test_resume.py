"""The ``resume`` command."""

from pathlib import Path

from tests.cli.orders.test_stop import run


def test_an_order_is_removed_and_the_others_stay(tmp_path: Path) -> None:
    run(tmp_path, "stop", "--principal", "ann", "--reason", "x")
    run(tmp_path, "stop", "--all", "--reason", "x")
    resumed = run(tmp_path, "resume", "--all")
    assert resumed.returncode == 0
    assert "Still stopped: principal ann" in resumed.stdout
    assert run(tmp_path, "resume", "--principal", "ann").returncode == 0
    again = run(tmp_path, "resume", "--principal", "ann")
    assert again.returncode == 2
    assert "there is no stop order for principal ann; stopped: nothing" in again.stderr


def test_a_target_is_required(tmp_path: Path) -> None:
    assert run(tmp_path, "resume").returncode == 2
