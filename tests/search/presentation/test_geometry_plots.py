"""Pictures: of the asked kind, the same each time, without a display."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from search.diagnostics.geometry import geometry
from search.diagnostics.layer_survey import LayerRow
from search.diagnostics.layers import Contextuality
from search.errors import DiagnosisError
from search.presentation.geometry_plots import bars, plot_geometry, plot_layers


@pytest.fixture
def spaces(rng):
    x = rng.normal(size=(200, 12)).astype(np.float32)
    return {"raw": geometry(x + 1.0, rng), "whitened": geometry(x, rng), "one text": geometry(x[:1], rng)}


@pytest.fixture
def rows():
    nothing = Contextuality(*[float("nan")] * 5)
    known = Contextuality(0.9, 0.5, 0.8, 0.1, 0.2)
    return [LayerRow(0, 0.7, None, nothing, None, None, 0.9, 0.5), LayerRow(1, 0.2, 0.1, known, 0.4, 0.5, 0.9, 0.5)]


def test_an_svg_names_the_spaces_and_is_the_same_each_time(spaces, tmp_path):
    plot_geometry(spaces, tmp_path / "a.svg")
    plot_geometry(spaces, tmp_path / "b.svg")
    content = (tmp_path / "a.svg").read_bytes()
    assert content == (tmp_path / "b.svg").read_bytes()
    assert ET.fromstring(content).tag.endswith("svg")
    assert b"raw (mean 0." in content


def test_a_png_is_one(spaces, rows, tmp_path):
    plot_geometry(spaces, tmp_path / "a.png")
    plot_layers(rows, tmp_path / "b.PNG")
    for name in ("a.png", "b.PNG"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_layers_without_judgements_are_drawn_all_the_same(rows, tmp_path):
    plot_layers(rows[:1], tmp_path / "a.svg")
    assert b"explained by a static vector" in (tmp_path / "a.svg").read_bytes()


def test_other_endings_and_places_are_refused_in_words(spaces, tmp_path):
    with pytest.raises(DiagnosisError, match=r"a \.png or \.svg file, found 'a\.jpg'"):
        plot_geometry(spaces, tmp_path / "a.jpg")
    with pytest.raises(DiagnosisError, match="cannot write"):
        plot_geometry(spaces, tmp_path / "missing" / "a.png")


def test_bars_are_as_high_as_their_values():
    assert bars([0, 1, 4, 8]) == " ▁▄█"
    assert bars([0, 1, 4, 8], plain=True) == " .=@"
    assert bars([1, 1, 1, 1, 2, 2], width=3) == "▄▄█"
    assert bars([]) == ""
    assert bars([0.0, 0.0]) == "  "
