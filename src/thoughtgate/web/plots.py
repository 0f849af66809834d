"""Small plots, rendered on the server without scripts or inline styles; bars lead to their calls."""

from collections.abc import Callable, Sequence
from typing import Final

from markupsafe import Markup

from thoughtgate.web.approvals.arguments import visible
from thoughtgate.web.templating import make_environment, shown_day

WIDTH: Final = 960
HEIGHT: Final = 190
BASE: Final = 168
"""The y coordinate of the axis, where the bars begin."""
TOP: Final = 14

BAR_WIDTH: Final = 100
MAX_NAME: Final = 42

_RANKING: Final = make_environment().get_template("ranking.html")

ORDER: Final = (
    ("ALLOW", "allowed"),
    ("HOLD", "held"),
    ("BLOCK", "denied"),
    ("THROTTLE", "limited"),
)
"""The order of the stacked bars, from the bottom up, with the words of the legend."""


def plot_over_time(
    counts: Sequence[tuple[float, str, int]],
    since: float,
    until: float,
    step_s: int,
    address: Callable[[float], str],
) -> Markup:
    """Draw calls by verdict as stacked bars; ``address`` returns where the bar of a time leads."""
    first = int(since // step_s)
    slots = int(until // step_s) - first + 1
    stacks: list[dict[str, int]] = [{} for _ in range(slots)]
    for at, word, count in counts:
        slot = int(at // step_s) - first
        if 0 <= slot < slots:
            stacks[slot][word] = stacks[slot].get(word, 0) + count
    top = max((sum(stack.values()) for stack in stacks), default=0) or 1
    width = WIDTH / slots
    bars = Markup("").join(
        _stack(stack, (index * width, width), top, (first + index) * step_s, address)
        for index, stack in enumerate(stacks)
        if stack
    )
    return Markup(
        '<svg class="plot" viewBox="0 0 {w} {h}" role="group" aria-label="calls over time">'
        '<line class="grid" x1="0" x2="{w}" y1="{t}" y2="{t}"/>'
        '<line class="axis" x1="0" x2="{w}" y1="{b}" y2="{b}"/>{bars}'
        '<text class="tick" x="4" y="{ty}">{top}</text>'
        '<text class="tick" x="0" y="{h1}">{start}</text>'
        '<text class="tick end" x="{w}" y="{h1}">{end}</text></svg>'
    ).format(
        w=WIDTH, h=HEIGHT, t=TOP, b=BASE, bars=bars, top=f"{top:,}", ty=TOP - 3, h1=HEIGHT - 6,
        start=shown_day(since)[:16], end=shown_day(until)[:16],
    )  # fmt: skip


def _stack(
    stack: dict[str, int],
    place: tuple[float, float],
    top: int,
    at: float,
    address: Callable[[float], str],
) -> Markup:
    """Draw the bar of one time step, from the left edge and with the width in ``place``."""
    left, width = place
    pieces, base = [], float(BASE)
    gap = min(2.0, width / 4)
    known = [word for word, _ in ORDER]
    bar = Markup('<rect class="v-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
    for word in (*known, *sorted(set(stack) - set(known))):
        height = (BASE - TOP) * stack.get(word, 0) / top
        if height:
            base -= height
            kind = word.lower() if word in known else "other"
            pieces.append(bar.format(kind, left + gap / 2, base, width - gap, max(height, 1.0)))
    told = ", ".join(f"{stack[word]:,} {name}" for word, name in ORDER if stack.get(word))
    return Markup('<a href="{}"><title>{}: {}</title>{}</a>').format(
        address(at), shown_day(at)[:16], told, Markup("").join(pieces)
    )


def plot_ranking(counts: Sequence[tuple[str, int, str]]) -> Markup:
    """Draw counts by name as bars, most first, each with the address that it leads to, if any."""
    top = max((count for _, count, _ in counts), default=0) or 1
    bars = [
        (_short(name), count, max(1.0, BAR_WIDTH * count / top), address)
        for name, count, address in counts
    ]
    return Markup(_RANKING.render(bars=bars))  # noqa: S704 - the template escapes names


def _short(name: str) -> str:
    shown = visible(name or "-").replace("\n", " ")
    return shown if len(shown) <= MAX_NAME else f"{shown[: MAX_NAME - 1]}…"
