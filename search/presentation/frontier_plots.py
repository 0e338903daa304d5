"""Quality against cost: a point a row, its name beside it, and the frontier, as SVG and as PNG from one layout."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from search.presentation.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    TOP,
    WIDTH,
    Axis,
    axis_of,
    colour,
    frame,
    number_text,
    shortened,
    stairs,
    svg,
)

_LABEL_GAP = 13.0
#: A cost of nothing has no place on a logarithmic scale.
_LEAST = 1e-9


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


def frontier_plot(points: Sequence[FrontierPoint], cost_label: str, quality_label: str) -> str:
    """Return quality against cost, cost on a logarithmic scale: whiskers are intervals, the line is the frontier."""
    drawing = _frontier(points, cost_label, quality_label)
    parts = frame(drawing.x, drawing.y)
    if len(drawing.ahead) > 1:
        ahead = [(drawing.x.at(cost), drawing.y.at(quality)) for cost, quality in drawing.ahead]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in stairs(ahead))
        parts.append(f'<polyline class="axis" fill="none" stroke-dasharray="3 3" points="{path}"/>')
    marks = zip(points, drawing.places, drawing.labels, strict=True)
    parts += [_frontier_mark(*mark, drawing.y) for mark in marks]
    return svg(parts, f"{quality_label} against {cost_label}")


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
    axes = figure.add_axes((LEFT / WIDTH, BOTTOM / HEIGHT, *size))
    axes.set(xscale="log", xlim=(x.low, x.high), ylim=(y.low, y.high), xlabel=cost_label, ylabel=quality_label)
    axes.step(*zip(*drawing.ahead, strict=True), where="post", color="0.4", linestyle="--", linewidth=0.8)
    for point, place, label in zip(points, drawing.places, drawing.labels, strict=True):
        cost, shade = max(point.cost, _LEAST), f"C{point.number % 10}"
        shown = {"color": shade, "alpha": 0.5 if point.dominated else 1.0}
        spread = [[point.quality - point.low], [point.high - point.quality]]
        axes.errorbar([cost], [point.quality], yerr=spread, fmt="o", mfc="none" if point.dominated else shade, **shown)
        offset = label.left - place[0], place[1] - label.middle
        axes.annotate(
            shortened(point.name),
            (cost, point.quality),
            offset,
            textcoords="offset points",
            va="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": shade},
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            **shown,
        )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: number_text(value)))
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
    x = axis_of(cost_label, costs, horizontal=True, log=True)
    ends = [end for point in points for end in (point.low, point.high, point.quality)]
    y = axis_of(quality_label, ends, horizontal=False, log=False)
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
        f'<g class="{colour(point.number)}"{faded}><title>{escape(told)}</title>'
        f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{y.at(point.low):.1f}" y2="{y.at(point.high):.1f}" '
        f'stroke="currentColor"/><circle cx="{left:.1f}" cy="{top:.1f}" r="4.5" fill="{fill}" '
        f'stroke="currentColor" stroke-width="1.5"/>'
        f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{label.near(left):.1f}" y2="{label.middle:.1f}" '
        f'stroke="currentColor" stroke-width=".6" opacity=".7"/>'
        f'<text class="halo" x="{label.left:.1f}" y="{label.middle + 4:.1f}">{escape(shortened(point.name))}</text></g>'
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
        width = 6.1 * len(shortened(name))
        options = [
            (abs(rise) / 8, _Label(left + 9, left + 9 + width, top + rise))
            if right
            else (abs(rise) / 8 + 1, _Label(left - 9 - width, left - 9, top + rise))
            for rise in (0, -14, 14, -28, 28, -42, 42, -56, 56)
            for right in (True, False)
        ]
        inside = [(cost, box) for cost, box in options if box.left > LEFT and box.right < WIDTH]
        inside = [(cost, box) for cost, box in inside if TOP < box.middle < HEIGHT - BOTTOM] or options
        others = [*taken, *(mark for index, mark in enumerate(marks) if index != place)]

        def burden(option: tuple[float, _Label], others: Sequence[_Label] = others) -> float:
            return option[0] + sum(option[1].crowding(other) for other in others)

        taken.append(min(inside, key=burden)[1])
    return taken
