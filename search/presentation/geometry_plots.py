"""Pictures of spaces and layers: PNG or SVG files, and bars of characters."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from search.diagnostics.geometry import Geometry
from search.diagnostics.layer_survey import MEASURE, LayerRow
from search.presentation.figures import legend, picture

_BARS = " ▁▂▃▄▅▆▇█"
_PLAIN_BARS = " .:-=+*#@"


def plot_geometry(spaces: Mapping[str, Geometry], path: Path) -> None:
    """Draw the cosines of random pairs and the spectrum of each space into one PNG or SVG file.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or it cannot be written.
    """
    with picture(path, columns=2) as (_, (cosines, spectra)):
        for name, space in spaces.items():
            edges, counts = np.asarray(space.histogram.edges), np.asarray(space.histogram.counts)
            total = counts.sum()
            if total:
                cosines.stairs(counts / total, edges, label=f"{name} (mean {space.mean_cosine:.2f})")
            values = np.asarray(space.spectrum)
            kept = values > 1e-9 * values.max(initial=0.0)
            if kept.any():
                shares = values[kept] / values.sum()
                spectra.plot(np.flatnonzero(kept) + 1, shares, label=f"{name} (IsoScore {space.isoscore:.2f})")
        cosines.set(xlabel="cosine of random pairs", ylabel="share of pairs")
        spectra.set(xlabel="direction", ylabel="share of variance", yscale="log", xscale="log")
        for axes in (cosines, spectra):
            legend(axes)


def plot_layers(rows: Sequence[LayerRow], path: Path) -> None:
    """Draw anisotropy, contextuality and retrieval quality, layer on x, into one PNG or SVG file.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or it cannot be written.
    """
    layers = [row.layer for row in rows]
    shapes = {
        "mean cosine of texts": [row.mean_cosine for row in rows],
        "self-similarity": [row.contextuality.adjusted_self_similarity for row in rows],
        "inside a sentence": [row.contextuality.adjusted_intra_sentence for row in rows],
        "explained by a static vector": [row.contextuality.adjusted_explained_static for row in rows],
    }
    quality = {"raw": [row.raw for row in rows], "whitened": [row.whitened for row in rows]}
    with picture(path, columns=2) as (_, (left, right)):
        for axes, lines in ((left, shapes), (right, quality)):
            for name, values in lines.items():
                axes.plot(layers, np.asarray(values, dtype=np.float64), marker="o", label=name)
            axes.set(xlabel="layer", xticks=layers)
            legend(axes)
        left.set(ylabel="cosine or share, adjusted for anisotropy")
        right.set(ylabel=MEASURE)


def bars(values: Sequence[float], *, width: int = 40, plain: bool = False) -> str:
    """Return one line of characters as high as the values are, the largest highest.

    Parameters
    ----------
    values
        Numbers from 0 up.
    width
        Most characters; neighbouring values are added up to fit.
    plain
        ASCII only, for terminals that show nothing else.
    """
    steps = _PLAIN_BARS if plain else _BARS
    groups = np.array_split(np.asarray(values, np.float64), min(width, len(values))) if len(values) else []
    sums = [float(group.sum()) for group in groups]
    largest = max(sums, default=0.0)
    if largest <= 0.0:
        return steps[0] * len(sums)
    # Rounded up: what is there is seen.
    return "".join(steps[int(np.ceil(value / largest * (len(steps) - 1)))] for value in sums)
