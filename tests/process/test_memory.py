"""Settling memory before serving."""

import gc
from collections.abc import Iterator

import pytest

from thoughtgate.process.memory import COLLECT_AFTER, settle_memory


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
