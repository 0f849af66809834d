"""Settling memory before serving."""

import gc
from collections.abc import Iterator

import pytest

from thoughtgate.process.memory import COLLECT_AFTER, collect_rarely, settle_memory


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_what_is_loaded_is_not_looked_at_again_and_garbage_still_goes() -> None:
    settle_memory()
    assert gc.get_freeze_count() > 1000
    assert gc.get_threshold() == COLLECT_AFTER

    loop: list[object] = []
    loop.append(loop)
    del loop
    assert gc.collect() >= 1


def test_garbage_is_searched_for_rarely_before_anything_is_frozen() -> None:
    frozen = gc.get_freeze_count()
    collect_rarely()
    assert gc.get_threshold() == COLLECT_AFTER
    assert gc.get_freeze_count() == frozen
