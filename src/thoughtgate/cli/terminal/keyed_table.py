"""A table that fits its width and knows its selected row by a key."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable

MIN_COLUMN: Final = 4
"""The width below which a column is not cut."""

SCROLLBAR: Final = 2


class KeyedTable(DataTable[Any]):
    """A table that knows its selected row by a key, so that a refresh never selects another row."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select_cursor", "Open")]

    def __init__(
        self, titles: Sequence[str], *, selects_first: bool, opens: bool = True, **options: Any
    ) -> None:
        """``selects_first`` selects the first row that ever appears; else a key press does.

        ``opens`` says that Enter opens the selected row.
        """
        super().__init__(cursor_type="row", zebra_stripes=True, **options)
        self._titles = titles
        self._selects_first = selects_first
        self._opens = opens
        self._rows: Mapping[str, Sequence[Text]] = {}
        self._keys: list[str] = []
        self._widths: list[int] = []

    @property
    def selected(self) -> str | None:
        """The key of the selected row; None if no row is selected."""
        is_there = self.show_cursor and 0 <= self.cursor_row < len(self._keys)
        return self._keys[self.cursor_row] if is_there else None

    def fill(self, rows: Mapping[str, Sequence[Text]]) -> None:
        """Replace the rows; the selected row stays selected, or if it is gone, no row is."""
        kept, is_first = self.selected, not self._keys
        self._rows, self._keys = rows, list(rows)
        self._lay_out()
        self.show_cursor = kept in rows or (is_first and self._selects_first)
        if kept is not None and kept in rows:
            self.move_cursor(row=self._keys.index(kept))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer Enter only where it does something."""
        del parameters
        return self._opens or action != "select_cursor"

    def on_resize(self, event: Resize) -> None:
        """Cut the columns to the new width."""
        del event
        at, offset = self.cursor_row, self.scroll_y
        self._lay_out()
        self.move_cursor(row=at, scroll=False)
        self.scroll_to(y=offset, animate=False)

    def on_click(self) -> None:
        """Select the row that was clicked."""
        self.show_cursor = True

    def action_cursor_down(self) -> None:
        """Move to the next row, or select a row if none is selected."""
        if not self._selects():
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        """Move to the previous row, or select a row if none is selected."""
        if not self._selects():
            super().action_cursor_up()

    def _selects(self) -> bool:
        """Select the row under the hidden cursor; return False if one is selected already."""
        if self.show_cursor or not self._keys:
            return False
        self.show_cursor = True
        # The cursor did not move, so the table itself sends no message.
        self.post_message(self.RowHighlighted(self, self.cursor_row, self._row_key()))
        return True

    def _row_key(self) -> Any:
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key

    def _lay_out(self) -> None:
        """Show the rows in columns that fit."""
        table = [[Text(title) for title in self._titles], *self._rows.values()]
        wanted = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
        screen = self.size.width or self.app.size.width
        widths = fit_widths(wanted, screen - SCROLLBAR - 2 * self.cell_padding * len(wanted))
        if widths != self._widths:
            self.clear(columns=True)
            self._widths = widths
            for title, width in zip(self._titles, widths, strict=True):
                self.add_column(title, width=width)
        self.clear()
        for key, cells in self._rows.items():
            self.add_row(*map(_cut, cells, widths), key=key)


def fit_widths(wanted: Sequence[int], available: int) -> list[int]:
    """Return the widths of columns; if they do not fit, the widest are cut until they do."""
    widths = list(wanted)
    while sum(widths) > available:
        at = widths.index(max(widths))
        if widths[at] <= MIN_COLUMN:
            break
        widths[at] -= 1
    return widths


def _cut(cell: Text, width: int) -> Text:
    shown = cell.copy()
    shown.truncate(width, overflow="ellipsis")
    return shown
