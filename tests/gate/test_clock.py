"""Time and ids for the drivers."""

import time
import uuid

from thoughtgate.gate.clock import monotonic, new_id, now


def test_ids_are_version_seven_unique_and_sortable_by_time() -> None:
    ids = [new_id() for _ in range(200)]
    parsed = [uuid.UUID(ident) for ident in ids]

    assert len(set(ids)) == 200
    assert {(one.version, one.variant) for one in parsed} == {(7, uuid.RFC_4122)}
    stamps = [one.int >> 80 for one in parsed]
    assert stamps == sorted(stamps)
    assert abs(stamps[0] - time.time() * 1000) < 60_000


def test_the_clocks_are_the_systems() -> None:
    assert abs(now() - time.time()) < 60
    assert monotonic() <= monotonic()
