"""Pictures as SVG: drawn in the page's own colours, or as files that stand alone.

Colours are CSS classes (`s0`, `s1`, ...), so that one drawing serves light, dark and paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

WIDTH, HEIGHT = 460, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 14, 44
_COLOURS = 8
_DASHES = ("", "6 3", "2 3", "8 3 2 3")

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


def line_plot(series: Sequence[Series], x_label: str, y_label: str, *, log: bool = False) -> str:
    """Return lines through points with a key; both scales logarithmic on request, values of 0 then left out."""
    shown = [
        Series(one.name, one.number, [(a, b) for a, b in one.points if not log or (a > 0 and b > 0)]) for one in series
    ]
    shown = [one for one in shown if one.points]
    x = axis_of(x_label, [a for one in shown for a, _ in one.points], horizontal=True, log=log)
    y = axis_of(y_label, [b for one in shown for _, b in one.points], horizontal=False, log=log)
    parts = frame(x, y)
    for one in shown:
        path = " ".join(f"{x.at(a):.1f},{y.at(b):.1f}" for a, b in one.points)
        parts.append(
            f'<polyline class="{colour(one.number)}" fill="none" stroke="currentColor" stroke-width="1.8" '
            f'stroke-dasharray="{_dash(one.number)}" points="{path}"><title>{escape(one.name)}</title></polyline>'
        )
    return svg(parts, f"{y_label} against {x_label}") + key([(one.name, one.number) for one in shown])


def histogram_plot(series: Sequence[Series], x_label: str, y_label: str) -> str:
    """Return outlines of histograms: points are (left edge, height), the last with height 0 closing it."""
    return line_plot([Series(one.name, one.number, stairs(list(one.points))) for one in series], x_label, y_label)


def key(rows: Sequence[tuple[str, int]]) -> str:
    """Return which colour and dash stands for which row."""
    items = "".join(
        f'<li class="{colour(number)}"><svg width="26" height="8" aria-hidden="true"><line x1="1" x2="25" y1="4" '
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


def axis_of(label: str, values: Sequence[float], *, horizontal: bool, log: bool) -> Axis:
    """Return an axis that all values fit on, with a little room beside them."""
    start, end = (LEFT, WIDTH - RIGHT) if horizontal else (HEIGHT - BOTTOM, TOP)
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


def frame(x: Axis, y: Axis) -> list[str]:
    """Return the axes of a drawing: lines, numbers, labels."""
    parts = []
    for tick in x.ticks():
        left = x.at(tick)
        parts.append(f'<line class="grid" x1="{left:.1f}" x2="{left:.1f}" y1="{y.start}" y2="{y.end}"/>')
        parts.append(_text(left, y.start + 16, number_text(tick), "middle"))
    for tick in y.ticks():
        top = y.at(tick)
        parts.append(f'<line class="grid" x1="{x.start}" x2="{x.end}" y1="{top:.1f}" y2="{top:.1f}"/>')
        parts.append(_text(x.start - 6, top + 4, number_text(tick), "end"))
    parts.append(
        f'<polyline class="axis" fill="none" points="{x.start},{y.end} {x.start},{y.start} {x.end},{y.start}"/>'
    )
    parts.append(_text((x.start + x.end) / 2, HEIGHT - 8, x.label, "middle"))
    turned = f'transform="translate(13 {(y.start + y.end) / 2:.0f}) rotate(-90)"'
    parts.append(f'<text class="soft" text-anchor="middle" {turned}>{escape(y.label)}</text>')
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="soft" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def svg(parts: Sequence[str], title: str) -> str:
    """Return a drawing of the standard size."""
    label = escape(title, quote=True)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" aria-label="{label}" {size}>'
    return head + "".join(parts) + "</svg>"


def stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
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


def number_text(value: float) -> str:
    """Write a number as it stands on an axis."""
    if value and abs(value) >= 1_000_000:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if abs(value) >= 1:
        return f"{value:,.6g}" if value < 10_000 else f"{value / 1000:,.6g}k"
    return f"{value:.3g}"


def shortened(name: str, longest: int = 24) -> str:
    """Return a name cut to what there is room for."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def colour(number: int) -> str:
    """Return the class that gives the row of that number its colour."""
    return f"s{number % _COLOURS}"


def _dash(number: int) -> str:
    return _DASHES[(number // _COLOURS + number) % len(_DASHES)]
