"""The clock that stands still."""

import pytest

from thoughtgate.testing.fake_clock import START, FakeClock


def test_time_passes_only_when_told() -> None:
    clock = FakeClock()
    assert clock() == clock() == START

    assert clock.advance(2.5) == START + 2.5 == clock.now


def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="back"):
        FakeClock().advance(-1)
