"""The tool that measures the content checks."""

import pytest
from tools.inspection_quality import HELD_BACK, INSPECTORS, WORK, Quality, cases, main, show_wrong


@pytest.mark.parametrize("kind", INSPECTORS)
def test_about_a_third_of_the_cases_is_held_back(kind: str) -> None:
    parts = [case.part for case in cases(kind)]
    assert 0.25 < parts.count(HELD_BACK) / len(parts) < 0.42
    assert set(parts) == {WORK, HELD_BACK}
    assert len({case.id for case in cases(kind)}) == len(parts)


def test_a_figure_below_the_bar_is_noticed() -> None:
    assert Quality(10, 9, 20, 1, 3).holds("definitions")
    assert not Quality(10, 8, 20, 1, 3).holds("definitions")
    assert not Quality(10, 9, 20, 2, 3).holds("definitions")
    assert not Quality(10, 9, 20, 1, 4).holds("definitions")


def test_only_cases_of_the_work_part_are_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    held_back = {case.id for kind in INSPECTORS for case in cases(kind) if case.part == HELD_BACK}
    shown = {line.split()[0] for kind in INSPECTORS for line in show_wrong(kind)}
    assert not shown & held_back
    monkeypatch.setattr("sys.argv", ["inspection_quality.py", "--show"])
    assert main() == 0
    assert "held back" in capsys.readouterr().out
