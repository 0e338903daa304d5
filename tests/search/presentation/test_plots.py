"""Drawings: values stand where they belong."""

import re
import struct
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.presentation.frontier_plots import FrontierPoint, frontier_plot, save_frontier_png
from search.presentation.plots import Axis, Series, histogram_plot, line_plot


def polyline(svg, place):
    found = re.findall(r'<polyline[^>]*points="([^"]+)"', svg)[place]
    return [tuple(map(float, pair.split(","))) for pair in found.split()]


def test_an_axis_maps_its_ends_to_its_ends_and_keeps_what_lies_outside_at_the_edge():
    linear, log = Axis("", 0, 10, 100, 200), Axis("", 1, 100, 0, 100, log=True)
    assert (linear.at(0), linear.at(5), linear.at(10), linear.at(99)) == (100, 150, 200, 200)
    assert log.at(10) == pytest.approx(50)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("", 0, 1, 0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Axis("", 0.31, 0.58, 0, 1), [0.4, 0.5]),
        (Axis("", 0.5, 60, 0, 1, log=True), [0.5, 1, 2, 5, 10, 20, 50]),
        (Axis("", 1, 1e5, 0, 1, log=True), [1, 10, 100, 1_000, 10_000, 100_000]),
    ],
)
def test_ticks_are_round(axis, ticks):
    assert axis.ticks() == pytest.approx(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.booleans())
def test_ticks_lie_on_the_axis_and_are_few(low, width, log):
    low = abs(low) + 1e-3 if log else low
    ticks = Axis("", low, low + width, 0, 1, log=log).ticks()
    assert len(ticks) <= 13
    slack = 1e-6 * max(abs(low), width)
    assert all(low - slack <= tick <= low + width + slack for tick in ticks)


def test_the_frontier_climbs_from_cheap_to_good_past_dominated_rows():
    points = [
        FrontierPoint("good", 0, 100.0, 0.9, 0.8, 1.0),
        FrontierPoint("bad", 1, 10.0, 0.3, 0.2, 0.4, dominated=True),
        FrontierPoint("cheap", 2, 1.0, 0.5, 0.4, 0.6),
    ]
    svg = frontier_plot(points, "ms", "nDCG@10")
    (left, low), (right, level), (same, high) = polyline(svg, 1)
    assert left < right == same
    assert low == level > high
    assert 'class="s1" opacity=".45"' in svg
    assert "<title>cheap: 0.5000 (0.4000 to 0.6000) at 1</title>" in svg


def test_a_cost_of_0_is_drawn():
    points = [FrontierPoint("free", 0, 0.0, 0.5, 0.5, 0.5), FrontierPoint("b", 1, 0.0, 0.5, 0.5, 0.5)]
    ET.fromstring(frontier_plot(points, "ms", "AP"))


@given(st.lists(st.tuples(st.floats(1e-3, 1e4), st.floats(0, 1)), min_size=1, max_size=12))
def test_names_stay_within_the_drawing(places):
    points = [FrontierPoint(f"row {n}", n, cost, q, q, q) for n, (cost, q) in enumerate(places)]
    svg = frontier_plot(points, "ms", "AP")
    for left, top in re.findall(r'class="halo" x="([-\d.]+)" y="([-\d.]+)"', svg):
        assert -5 <= float(left) <= 460
        assert 0 <= float(top) <= 330


def test_the_same_layout_is_written_as_a_bitmap(tmp_path):
    points = [
        FrontierPoint("good", 0, 100.0, 0.9, 0.8, 1.0),
        FrontierPoint("bad", 1, 10.0, 0.3, 0.2, 0.4, dominated=True),
        FrontierPoint("free", 2, 0.0, 0.5, 0.4, 0.6),
    ]
    save_frontier_png(points, "ms", "nDCG@10", tmp_path / "a.png")
    head = (tmp_path / "a.png").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">2I", head[16:])
    assert width / height == pytest.approx(460 / 320, abs=0.01)


def test_a_histogram_is_drawn_as_stairs():
    svg = histogram_plot([Series("a", 0, [(0.0, 0.25), (1.0, 0.75), (2.0, 0.0)])], "cosine", "share")
    corners = polyline(svg, 1)
    assert len(corners) == 5
    assert corners[0][1] == corners[1][1]
    assert corners[1][0] == corners[2][0]


def test_values_of_0_are_left_out_of_logarithmic_scales():
    svg = line_plot([Series("a", 0, [(1, 1.0), (2, 0.0), (3, 0.1)]), Series("none", 1, [])], "x", "y", log=True)
    assert len(polyline(svg, 1)) == 2
    ET.fromstring(line_plot([], "x", "y").partition("<ul")[0])
