"""Pictures as SVG: drawn in the page's own colours, or as files that stand alone.

Colours are CSS classes (`s0`, `s1`, ...), so that one drawing serves light, dark and paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 460, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 14, 44
_COLOURS = 8
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_LABEL_GAP = 13.0
#: A cost of nothing has no place on a logarithmic scale.
_LEAST = 1e-9

#: What a drawing needs to be read outside the page.
STANDALONE_STYLE = """
svg{background:#fff;color:#1b1f24;font:11px system-ui,sans-serif}
.grid{stroke:#d8dde3}.axis{stroke:#6b7480}text{fill:currentColor}.soft{fill:#57606a}
.halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.s0{color:#0062ad}.s1{color:#c2410c}.s2{color:#00795c}.s3{color:#9c3587}
.s4{color:#7a5c00}.s5{color:#5a4fcf}.s6{color:#b3123f}.s7{color:#4b5563}
"""


@dataclass(frozen=True, slots=True)
class Series:
    """Points joined by a line; `number` chooses colour and dashes and is the row's place in the table."""

    name: str
    number: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A row in a picture of quality against cost; `low` and `high` are the ends of its interval."""

    name: str
    number: int
    cost: float
    quality: float
    low: float
    high: float
    dominated: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Values to pixels along one side of a drawing."""

    label: str
    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the place of a value, in pixels; what lies outside stays at the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return values worth a line: whole steps of 1, 2 or 5 times a power of ten."""
        if not self.log:
            return _linear_ticks(self.low, self.high)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(decades) <= 4 else (1,)
        values = [step * 10.0**decade for decade in decades[:: math.ceil(len(decades) / 8)] for step in steps]
        return [value for value in values if self.low <= value * (1 + 1e-9) and value <= self.high * (1 + 1e-9)]


def frontier_plot(points: Sequence[FrontierPoint], cost_label: str, quality_label: str) -> str:
    """Return quality against cost, cost on a logarithmic scale: whiskers are intervals, the line is the frontier."""
    drawing = _frontier(points, cost_label, quality_label)
    parts = _frame(drawing.x, drawing.y)
    if len(drawing.ahead) > 1:
        ahead = [(drawing.x.at(cost), drawing.y.at(quality)) for cost, quality in drawing.ahead]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in _steps(ahead))
        parts.append(f'<polyline class="axis" fill="none" stroke-dasharray="3 3" points="{path}"/>')
    marks = zip(points, drawing.places, drawing.labels, strict=True)
    parts += [_frontier_mark(*mark, drawing.y) for mark in marks]
    return _svg(parts, f"{quality_label} against {cost_label}")


def line_plot(series: Sequence[Series], x_label: str, y_label: str, *, log: bool = False) -> str:
    """Return lines through points with a key; both scales logarithmic on request, values of 0 then left out."""
    shown = [
        Series(one.name, one.number, [(a, b) for a, b in one.points if not log or (a > 0 and b > 0)]) for one in series
    ]
    shown = [one for one in shown if one.points]
    x = _axis(x_label, [a for one in shown for a, _ in one.points], horizontal=True, log=log)
    y = _axis(y_label, [b for one in shown for _, b in one.points], horizontal=False, log=log)
    parts = _frame(x, y)
    for one in shown:
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in one.points)
        parts.append(
            f'<polyline class="{_colour(one.number)}" fill="none" stroke="currentColor" stroke-width="1.8" '
            f'stroke-dasharray="{_dash(one.number)}" points="{path}"><title>{escape(one.name)}</title></polyline>'
        )
    return _svg(parts, f"{y_label} against {x_label}") + key([(one.name, one.number) for one in shown])


def histogram_plot(series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Return outlines of histograms: points are (left edge, height), the last with height 0 closing it."""
    return line_plot([Series(one.name, one.number, _steps(list(one.points))) for one in series], x_label, y_label)


def key(rows: Sequence[tuple[str, int]]) -> str:
    """Return which colour and dash stands for which row."""
    items = "".join(
        f'<li class="{_colour(number)}"><svg width="26" height="8" aria-hidden="true"><line x1="1" x2="25" y1="4" '
        f'y2="4" stroke="currentColor" stroke-width="2" stroke-dasharray="{_dash(number)}"/></svg>'
        f"<span>{escape(name)}</span></li>"
        for name, number in rows
    )
    return f'<ul class="key">{items}</ul>'


def save_svg(drawing: str, path: Path) -> None:
    """Write the drawing of a picture to a file that can be read alone; its key, if any, is left out."""
    svg = drawing[: drawing.index("</svg>") + len("</svg>")]
    opening, rest = svg.split(">", 1)
    path.write_text(f"{opening}><style>{STANDALONE_STYLE}</style>{rest}\n", encoding="utf-8")


def save_frontier_png(points: Sequence[FrontierPoint], cost_label: str, quality_label: str, path: Path) -> None:
    """Write the drawing of `frontier_plot` as a PNG file, for places that take no SVG."""
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import FuncFormatter

    drawing = _frontier(points, cost_label, quality_label)
    x, y = drawing.x, drawing.y
    # One pixel of the drawing is one point here, so that names lie where they were placed.
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    size = (x.end - x.start) / WIDTH, (y.start - y.end) / HEIGHT
    axes = figure.add_axes((_LEFT / WIDTH, _BOTTOM / HEIGHT, *size))
    axes.set(xscale="log", xlim=(x.low, x.high), ylim=(y.low, y.high), xlabel=cost_label, ylabel=quality_label)
    axes.step(*zip(*drawing.ahead, strict=True), where="post", color="0.4", linestyle="--", linewidth=0.8)
    for point, place, label in zip(points, drawing.places, drawing.labels, strict=True):
        cost, colour = max(point.cost, _LEAST), f"C{point.number % 10}"
        shown = {"color": colour, "alpha": 0.5 if point.dominated else 1.0}
        spread = [[point.quality - point.low], [point.high - point.quality]]
        axes.errorbar([cost], [point.quality], yerr=spread, fmt="o", mfc="none" if point.dominated else colour, **shown)
        offset = label.left - place[0], place[1] - label.middle
        axes.annotate(
            _short(point.name),
            (cost, point.quality),
            offset,
            textcoords="offset points",
            va="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": colour},
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            **shown,
        )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: _number(value)))
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=200)


@dataclass(frozen=True, slots=True)
class _Frontier:
    """Where everything of a picture of quality against cost lies; `ahead` are the frontier's costs and qualities."""

    x: Axis
    y: Axis
    ahead: list[tuple[float, float]]
    places: list[tuple[float, float]]
    labels: "list[_Label]"


def _frontier(points: Sequence[FrontierPoint], cost_label: str, quality_label: str) -> _Frontier:
    costs = [max(point.cost, _LEAST) for point in points]
    x = _axis(cost_label, costs, horizontal=True, log=True)
    ends = [end for point in points for end in (point.low, point.high, point.quality)]
    y = _axis(quality_label, ends, horizontal=False, log=False)
    ahead: list[tuple[float, float]] = []
    for cost, quality in sorted(
        ((cost, point.quality) for cost, point in zip(costs, points, strict=True)), key=lambda one: (one[0], -one[1])
    ):
        if not ahead or quality > ahead[-1][1]:
            ahead.append((cost, quality))
    places = [(x.at(cost), y.at(point.quality)) for cost, point in zip(costs, points, strict=True)]
    return _Frontier(x, y, ahead, places, _labels([point.name for point in points], places))


def _frontier_mark(point: FrontierPoint, place: tuple[float, float], label: "_Label", y: Axis) -> str:
    left, top = place
    faded = ' opacity=".45"' if point.dominated else ""
    fill = "none" if point.dominated else "currentColor"
    told = f"{point.name}: {point.quality:.4f} ({point.low:.4f} to {point.high:.4f}) at {point.cost:.4g}"
    return (
        f'<g class="{_colour(point.number)}"{faded}><title>{escape(told)}</title>'
        f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{y.at(point.low):.1f}" y2="{y.at(point.high):.1f}" '
        f'stroke="currentColor"/><circle cx="{left:.1f}" cy="{top:.1f}" r="4.5" fill="{fill}" '
        f'stroke="currentColor" stroke-width="1.5"/>'
        f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{label.near(left):.1f}" y2="{label.middle:.1f}" '
        f'stroke="currentColor" stroke-width=".6" opacity=".7"/>'
        f'<text class="halo" x="{label.left:.1f}" y="{label.middle + 4:.1f}">{escape(_short(point.name))}</text></g>'
    )


@dataclass(frozen=True, slots=True)
class _Label:
    """The box of a name, in pixels."""

    left: float
    right: float
    middle: float

    def near(self, x: float) -> float:
        """Return the end of the box next to a place."""
        return self.left - 2 if self.left > x else self.right + 2

    def crowding(self, other: "_Label") -> float:
        """Return how much of the box lies on another."""
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = _LABEL_GAP - abs(self.middle - other.middle)
        return max(0.0, wide) * max(0.0, high)


def _labels(names: Sequence[str], places: Sequence[tuple[float, float]]) -> list[_Label]:
    """Return a box for each point's name, where it lies on the fewest other names and points."""
    # Wider than what is drawn: a name right beside another row's point would be read as that row's.
    marks = [_Label(left - 24, left + 24, top) for left, top in places]
    taken: list[_Label] = []
    for place, name in enumerate(names):
        left, top = places[place]
        width = 6.1 * len(_short(name))
        options = [
            (abs(rise) / 8, _Label(left + 9, left + 9 + width, top + rise))
            if right
            else (abs(rise) / 8 + 1, _Label(left - 9 - width, left - 9, top + rise))
            for rise in (0, -14, 14, -28, 28, -42, 42, -56, 56)
            for right in (True, False)
        ]
        inside = [(cost, box) for cost, box in options if box.left > _LEFT and box.right < WIDTH]
        inside = [(cost, box) for cost, box in inside if _TOP < box.middle < HEIGHT - _BOTTOM] or options
        others = [*taken, *(mark for index, mark in enumerate(marks) if index != place)]

        def burden(option: tuple[float, _Label], others: Sequence[_Label] = others) -> float:
            return option[0] + sum(option[1].crowding(other) for other in others)

        taken.append(min(inside, key=burden)[1])
    return taken


def _axis(label: str, values: Sequence[float], *, horizontal: bool, log: bool) -> Axis:
    start, end = (_LEFT, WIDTH - _RIGHT) if horizontal else (HEIGHT - _BOTTOM, _TOP)
    low, high = min(values, default=0.0), max(values, default=1.0)
    if log:
        low, high = (low, high) if values else (1.0, 10.0)
        spread = max((high / low) ** 0.08, 1.3)
        return Axis(label, low / spread, high * spread, start, end, log=True)
    if low == high:
        low, high = low - 0.5, high + 0.5
    room = 0.05 * (high - low)
    # A scale that nearly begins at 0 begins there.
    return Axis(label, 0.0 if 0 <= low <= room else low - room, high + room, start, end)


def _frame(x: Axis, y: Axis) -> list[str]:
    parts = []
    for tick in x.ticks():
        left = x.at(tick)
        parts.append(f'<line class="grid" x1="{left:.1f}" x2="{left:.1f}" y1="{y.start}" y2="{y.end}"/>')
        parts.append(_text(left, y.start + 16, _number(tick), "middle"))
    for tick in y.ticks():
        top = y.at(tick)
        parts.append(f'<line class="grid" x1="{x.start}" x2="{x.end}" y1="{top:.1f}" y2="{top:.1f}"/>')
        parts.append(_text(x.start - 6, top + 4, _number(tick), "end"))
    parts.append(
        f'<polyline class="axis" fill="none" points="{x.start},{y.end} {x.start},{y.start} {x.end},{y.start}"/>'
    )
    parts.append(_text((x.start + x.end) / 2, HEIGHT - 8, x.label, "middle"))
    turned = f'transform="translate(13 {(y.start + y.end) / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="soft" text-anchor="middle" {turned}>{escape(y.label)}</text>')
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: Sequence[str], title: str) -> str:
    label = escape(title, quote=True)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label="{label}" {size}>'
    return head + "".join(parts) + "</svg>"


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of stairs: level to the next point, then up or down to it."""
    corners: list[tuple[float, float]] = []
    for place, (x, y) in enumerate(points):
        if place:
            corners.append((x, points[place - 1][1]))
        corners.append((x, y))
    return corners


def _linear_ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [
        round(place * step, 12) for place in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _number(value: float) -> str:
    if value and abs(value) >= 1_000_000:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 1:
        return f"{value:,.6g}" if value < 10_000 else f"{value / 1000:,.6g}k"
    return f"{value:.3g}"


def _short(name: str, longest: int = 24) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _colour(number: int) -> str:
    return f"s{number % _COLOURS}"


def _dash(number: int) -> str:
    return _DASHES[(number // _COLOURS + number) % len(_DASHES)]
