"""Pages of aggregated lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.hub.list_pages import PAGE_BYTES, page_of


@given(sizes=st.lists(st.integers(0, PAGE_BYTES * 2), max_size=40))
@settings(max_examples=150, deadline=None)
def test_following_the_cursors_gives_every_entry_once(sizes: list[int]) -> None:
    seen: list[int] = []
    cursor: str | None = None
    while True:
        page = page_of(sizes, "7", cursor)
        assert page is not None
        seen += range(page.start, page.stop)
        if not page.cursor:
            break
        assert page.stop > page.start
        cursor = page.cursor

    assert seen == list(range(len(sizes)))


def test_a_page_holds_as_much_as_fits() -> None:
    page = page_of([PAGE_BYTES // 2, PAGE_BYTES // 2, 1], "1", None)

    assert page is not None
    assert (page.start, page.stop, page.cursor) == (0, 2, "1:2")


def test_a_cursor_of_another_list_or_making_is_refused() -> None:
    for cursor in ("", "2:1", "1:9", "1:x", "1:-1", "nonsense", "1:٣٣", "1:" + "9" * 5000):
        assert page_of([1, 1], "1", cursor) is None, cursor
