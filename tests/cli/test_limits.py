"""The ``limits`` command."""

import json
import os
import re
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm

from thoughtgate.policy.call import Call
from thoughtgate.policy.limits import Breaker, Limit
from thoughtgate.policy.shared_limits import SharedLimitState
from thoughtgate.stores.limits import LimitStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name

TEXT = """schema: 1
default: forward
limits:
  - {id: searches, tool: search, budget: 200/1d, rate: 30/m}
  - {budget: 3, scope: tool, exact: true}
  - {id: health, breaker: {failures: 1, cooldown: 1h}, duplicate: 5s}
"""


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    config = tmp_path / "thoughtgate.yaml"
    if not config.exists():
        config.write_text(TEXT)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "COLUMNS": "160",
    }
    chosen = ("-c", str(config)) if words[0] != "status" else ()
    return run_warm(*words, *chosen, env=env, cwd=tmp_path)


@pytest.fixture
def counted(tmp_path: Path) -> None:
    """Two processes have counted: this one, and one that was killed."""
    with closing(open_database(StoreLocation(tmp_path / "state"))) as database:
        limits = [
            Limit("searches", budget=200, window_s=86_400.0),
            Limit("health", breaker=Breaker(1, 60.0, 3600.0)),
        ]
        call = Call("s", "tool", "search", {})
        dead = own_name().rpartition("|")[0] + "|1"
        for owner in (own_name(), dead):
            state = SharedLimitState(limits, LimitStore(database, own_name(), owner))
            for _ in range(3):
                assert state.take((call,), time.time()) is None
        state.ended(call, time.time(), failed=True)


def test_limits_that_one_gate_counts_are_listed_without_numbers(tmp_path: Path) -> None:
    listed = json.loads(run(tmp_path, "limits", "list", "--json").stdout)
    assert [one["id"] for one in listed] == ["searches", "limits[1]", "health"]
    assert listed[0]["rate"] == {"calls": 30, "period_s": 60.0}
    assert (listed[0]["window_s"], listed[1]["exact"]) == (86_400.0, True)
    assert [one["counts"] for one in listed] == [[], [], []]
    text = run(tmp_path, "limits", "list").stdout
    assert re.search(
        "^searches +budget 200 in 1d, rate 30 in 1m +counted by each", text, re.MULTILINE
    )
    assert "limits[1]  budget 3, per tool " in text
    refused = run(tmp_path, "limits", "reset", "searches")
    assert refused.returncode == 2
    assert "restart the gate" in refused.stderr


@pytest.mark.usefixtures("counted")
def test_shared_counts_are_listed_and_reset(tmp_path: Path) -> None:
    (count,) = json.loads(run(tmp_path, "limits", "list", "--json").stdout)[0]["counts"]
    assert count["used"] + count["left"] + count["leased"] + count["lost"] == 200
    assert count["leased"] > 0
    assert count["lost"] > 0
    for words in (("limits", "list"), ("status",)):
        text = run(tmp_path, *words).stdout
        assert "of 200 used" in text
        assert "lost with gates that died, window ends 20" in text
        assert "s tool search: breaker open until 20" in text
    assert len(json.loads(run(tmp_path, "status", "--json").stdout)["limits"]) == 2
    assert run(tmp_path, "limits", "reset", "searches").stdout == "Limit searches is reset.\n"
    (count,) = json.loads(run(tmp_path, "limits", "list", "--json").stdout)[0]["counts"]
    assert (count["used"], count["lost"]) == (0, 0)
    done = json.loads(run(tmp_path, "limits", "reset", "health", "--json").stdout)
    assert done == {"limit": "health", "counts": 1}
    assert "breaker open" not in run(tmp_path, "status").stdout


def test_an_unknown_limit_is_named(tmp_path: Path) -> None:
    refused = run(tmp_path, "limits", "reset", "other")
    assert refused.returncode == 2
    assert "it has: searches, limits[1], health" in refused.stderr


def test_a_config_without_limits_says_so(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").write_text("schema: 1\ndefault: forward\n")
    assert "has no limits" in run(tmp_path, "limits", "list").stderr
