"""Workers that leave their numbers for each other."""

import asyncio
import stat
from pathlib import Path

import pytest
from tests.support.waiting import run_async

from thoughtgate.proxy import worker_metrics as proxy_numbers
from thoughtgate.proxy.worker_metrics import WorkerMetrics, metrics_directory


def _worker(directory: Path, pid: int, monkeypatch: pytest.MonkeyPatch) -> WorkerMetrics:
    monkeypatch.setattr("os.getpid", lambda: pid)
    return WorkerMetrics(str(directory))


def _connections(shared: WorkerMetrics) -> str:
    lines = shared.render().decode().splitlines()
    return next((one for one in lines if one.startswith("mcp_connections_active")), "")


def test_what_one_page_has_shown_the_next_worker_shows_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _worker(tmp_path, 1, monkeypatch)
    second = _worker(tmp_path, 2, monkeypatch)

    first.set("mcp_connections_active", 2)
    assert _connections(first) == "mcp_connections_active 2.0"
    assert _connections(second) == "mcp_connections_active 2.0"
    second.set("mcp_connections_active", 3)
    assert _connections(second) == "mcp_connections_active 5.0"
    assert _connections(first) == "mcp_connections_active 5.0"
    assert stat.S_IMODE((tmp_path / "1.json").stat().st_mode) == 0o600


def test_a_worker_tells_while_it_runs_and_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _worker(tmp_path, 1, monkeypatch)
    second = _worker(tmp_path, 2, monkeypatch)
    seen = []

    async def run() -> None:
        async with first.telling(lambda: first.add("mcp_connections_active", 1)):
            await asyncio.sleep(0)
            seen.append(_connections(second))
        seen.append(_connections(second))

    run_async(run())

    assert seen == ["mcp_connections_active 1.0", "mcp_connections_active 2.0"]


def test_what_has_not_changed_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _worker(tmp_path, 1, monkeypatch)
    first.render()
    (tmp_path / "1.json").unlink()
    first.render()
    assert not (tmp_path / "1.json").exists()


def test_a_file_that_cannot_be_read_or_written_spoils_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "9.json").write_text("[[")
    first = _worker(tmp_path, 1, monkeypatch)
    nowhere = _worker(tmp_path / "gone", 2, monkeypatch)

    for shared in (first, nowhere):
        shared.set("mcp_connections_active", 1)
        assert _connections(shared) == "mcp_connections_active 1.0"


def test_the_place_is_private_and_nothing_is_left_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = tmp_path / "workers" / "dead"
    dead.mkdir(parents=True)
    monkeypatch.setattr(proxy_numbers, "is_alive", lambda name: name != "dead")

    with metrics_directory(str(tmp_path)) as directory:
        assert stat.S_IMODE(Path(directory).stat().st_mode) == 0o700
        assert not dead.exists()
        Path(directory, "1.json").write_text("[]")

    assert not Path(directory).exists()
