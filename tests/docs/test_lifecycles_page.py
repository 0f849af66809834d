"""The lifecycles in the docs are those of the program."""

from pathlib import Path

from tools.docs_lifecycles import LIFECYCLES, render

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lifecycles.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text("utf-8") == render(), "write it again: make docs"


def test_every_state_is_explained_and_every_move_is_drawn() -> None:
    page = render()
    for cycle in LIFECYCLES:
        assert set(cycle.meanings) == set(cycle.table)
        for state, following in cycle.table.items():
            for each in following:
                assert f"    {state} --> {each}\n" in page
