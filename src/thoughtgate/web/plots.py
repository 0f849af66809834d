"""Small plots, rendered on the server without scripts or inline styles; bars link to their calls."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from thoughtgate.web.approvals.arguments import visible
from thoughtgate.web.templating import make_environment, shown_day

WIDTH: Final = 960
BASE: Final = 160
"""The y coordinate of the axis, where the bars begin."""
TOP: Final = 4

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
    """Draw calls by verdict as stacked bars; ``address`` returns the link of the bar of a time."""
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
    return _frame(bars, f"{top:,}", since, until, "calls over time")


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


class Curve(NamedTuple):
    """One line of a plot."""

    name: str
    kind: str
    """The class that colours it."""
    values: dict[float, float]
    """By the start of each step."""


def plot_curves(  # noqa: PLR0917 - as of the plot over time
    curves: Sequence[Curve],
    since: float,
    until: float,
    step_s: int,
    address: Callable[[float], str],
    unit: str,
    label: str,
) -> Markup:
    """Draw values over time as lines; ``address`` returns the link of the point of a time."""
    first = int(since // step_s)
    width = WIDTH / (int(until // step_s) - first + 1)
    top = max((value for curve in curves for value in curve.values.values()), default=0) or 1

    def place(at: float, value: float) -> tuple[float, float]:
        return (int(at // step_s) - first + 0.5) * width, BASE - (BASE - TOP) * value / top

    lines = Markup("").join(
        Markup('<polyline class="curve {}" points="{}"/>').format(
            curve.kind,
            " ".join(
                "{:.1f},{:.1f}".format(*place(*pair)) for pair in sorted(curve.values.items())
            ),
        )
        for curve in curves
    )
    times = sorted({at for curve in curves for at in curve.values if since - step_s < at <= until})
    points = Markup("").join(_point(curves, at, (place, width), address(at), unit) for at in times)
    return _frame(
        Markup("{}{}").format(lines, points), f"{_number(top)} {unit}", since, until, label
    )


def _number(value: float) -> str:
    """Return a value with four digits, or with more if its whole part has more."""
    if abs(value) >= 1000:  # noqa: PLR2004 - the least with four digits
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _point(
    curves: Sequence[Curve],
    at: float,
    where: tuple[Callable[[float, float], tuple[float, float]], float],
    address: str,
    unit: str,
) -> Markup:
    """Draw the values of one time; the whole height above the axis links to its calls."""
    place, width = where
    there = [curve for curve in curves if at in curve.values]
    told = ", ".join(f"{one.name} {_number(one.values[at])} {unit}" for one in there)
    dots = Markup("").join(
        Markup('<path class="dot {}" d="M{:.1f} {:.1f}h0"/>').format(
            one.kind, *place(at, one.values[at])
        )
        for one in there
    )
    left = place(at, 0)[0] - width / 2
    area = Markup('<rect class="area" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>')
    return Markup('<a href="{}"><title>{}: {}</title>{}{}</a>').format(
        address, shown_day(at)[:16], told, area.format(left, TOP, width, BASE - TOP), dots
    )


def _frame(content: Markup, top: str, since: float, until: float, label: str) -> Markup:
    """Return a plot with its axis, the value at the top and the times at both ends."""
    # The texts are outside the picture, so that they keep their size when it is stretched.
    return Markup(
        '<div class="chart"><p class="ticks">{top}</p>'
        '<svg class="plot" viewBox="0 0 {w} {b}" preserveAspectRatio="none" role="group" '
        'aria-label="{label}"><line class="grid" x1="0" x2="{w}" y1="{t}" y2="{t}"/>'
        '<line class="axis" x1="0" x2="{w}" y1="{b}" y2="{b}"/>{content}</svg>'
        '<p class="ticks"><span>{start}</span> <span>{end}</span></p></div>'
    ).format(
        w=WIDTH, t=TOP, b=BASE, content=content, top=top, label=label,
        start=shown_day(since)[:16], end=shown_day(until)[:16],
    )  # fmt: skip


def plot_ranking(counts: Sequence[tuple[str, int, str]]) -> Markup:
    """Draw counts by name as bars, most first, each with the address that it links to, if any."""
    top = max((count for _, count, _ in counts), default=0) or 1
    bars = [
        (_short(name), count, max(1.0, BAR_WIDTH * count / top), address)
        for name, count, address in counts
    ]
    return Markup(_RANKING.render(bars=bars))  # noqa: S704 - the template escapes names


def _short(name: str) -> str:
    shown = visible(name or "-").replace("\n", " ")
    return shown if len(shown) <= MAX_NAME else f"{shown[: MAX_NAME - 1]}…"
