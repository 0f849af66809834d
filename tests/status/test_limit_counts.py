"""Shared counts of limits, for people."""

from contextlib import closing
from pathlib import Path

from thoughtgate.gate.clock import now
from thoughtgate.policy.call import Call
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.shared_limits import SharedLimitState
from thoughtgate.status.limit_counts import (
    describe_count,
    read_limit_counts,
    reset_limit,
    shared_limits,
)
from thoughtgate.stores.limits import LimitStore
from thoughtgate.stores.open_database import StoreLocation, open_database


def test_counts_are_read_and_reset(tmp_path: Path) -> None:
    location = StoreLocation(tmp_path / "state")
    with closing(open_database(location)) as database:
        state = SharedLimitState(
            [Limit("b", budget=2000, scope="principal")], LimitStore(database, "", "other")
        )
        state.take((Call("s", "tool", "x", {}, principal="ann"),), now())
    (count,) = read_limit_counts(location)
    assert describe_count(count) == "ann: 1 of 2,000 used, 1,999 left"
    assert shared_limits(location) == [count]
    assert reset_limit(location, "b") == 1
    assert read_limit_counts(location)[0]["used"] == 0


def test_where_there_is_no_store_nothing_is_created(tmp_path: Path) -> None:
    assert shared_limits(StoreLocation(tmp_path / "none")) == []
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "thoughtgate.db").mkdir()
    assert shared_limits(StoreLocation(tmp_path / "file")) == []


def test_a_count_says_what_is_leased_and_lost() -> None:
    count = {
        "limit": "b",
        "of": [],
        "budget": 10,
        "used": 1,
        "left": 4,
        "leased": 2,
        "lost": 3,
        "window_ends_at": "2026-01-01T00:00:00.000Z",
    }
    assert describe_count(count) == (
        "1 of 10 used, 4 left, up to 2 leased by running gates, "
        "up to 3 lost with gates that died, window ends 2026-01-01T00:00:00.000Z"
    )
