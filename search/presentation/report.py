"""One page that holds an evaluation whole: no network, light and dark, on screen and on paper."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from search.errors import RunFileError
from search.evaluation.advice import advise
from search.evaluation.evaluation import Evaluation
from search.evaluation.precision_recall import precision_recall
from search.presentation import plots, report_tables
from search.presentation.frontier_plots import FrontierPoint, frontier_plot, save_frontier_png
from search.presentation.plots import Series
from search.ranking import Run

_MOST_DISAGREED = 20
_LETTERS = (
    " A letter names a row that this one beats by more than chance "
    "(paired randomisation, Holm's correction over all pairs)."
)
#: What may stand on the cost axis: heading, name in a cost's JSON.
_COST_AXES = (
    ("ms a query (median)", "query_ms_p50"),
    ("bytes a text", "bytes_per_text"),
    ("s of indexing", "index_seconds"),
)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts or shares between edges: one more edge than heights."""

    edges: Sequence[float]
    heights: Sequence[float]


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows.

    Attributes
    ----------
    evaluation
        The rows.
    runs
        Row name -> run, for precision against recall; left out where empty.
    marks
        Query id -> what is peculiar about it (`search.evaluation.marks`).
    spectra
        Retriever -> eigenvalues of its vectors' covariance, largest first.
    cosines
        Retriever -> histogram of the cosines of random pairs.
    provenance
        Names and values: versions, model hashes, machine, date.
    """

    evaluation: Evaluation
    runs: Mapping[str, Run] = field(default_factory=dict)
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    spectra: Mapping[str, Sequence[float]] = field(default_factory=dict)
    cosines: Mapping[str, Histogram] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The heading of the page."""
        name = self.evaluation.collection.get("name", "")
        return f"twindex: {name}" if name else "twindex: an evaluation"


def report_html(report: Report) -> str:
    """Return the page."""
    template = files("search.presentation").joinpath("report.html").read_text(encoding="utf-8")
    # What ends a script, or opens a comment in one, must not stand in its data.
    data = json.dumps(_scatter_data(report), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    parts = {"@title@": escape(report.title), "@body@": "\n".join(_sections(report)), "@data@": data}
    pieces = []
    # One pass from left to right: what is put in is never searched for the next mark.
    for mark, value in parts.items():
        before, template = template.split(mark, 1)
        pieces += [before, value]
    return "".join([*pieces, template])


def write_report(report: Report, path: Path) -> None:
    """Write the page to a file, whole or not at all.

    Raises
    ------
    RunFileError
        If the file cannot be written.
    """
    aside = path.with_name(f".{path.name}.writing")
    try:
        with aside.open("w", encoding="utf-8", errors="replace", newline="\n") as handle:
            handle.write(report_html(report))
            handle.flush()
            os.fsync(handle.fileno())
        aside.replace(path)
    except OSError as error:
        message = f"{path}: {error.strerror or error}; name a place that can be written to"
        raise RunFileError(message) from error


def write_pictures(report: Report, folder: Path) -> list[Path]:
    """Write each picture of the page as an SVG file that can be read alone, and return the paths.

    Raises
    ------
    RunFileError
        If the folder or a file cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (_, drawing) in _pictures(report).items():
            path = folder / f"{name}.svg"
            plots.save_svg(drawing, path)
            written.append(path)
    except OSError as error:
        message = f"{folder}: {error.strerror or error}; name a folder that can be written to"
        raise RunFileError(message) from error
    return written


def save_frontier(evaluation: Evaluation, path: Path, cost: str = "query_ms_p50") -> None:
    """Draw quality against one cost into an SVG or PNG file.

    Parameters
    ----------
    evaluation
        The rows; those whose cost is unknown are left out.
    path
        The file; its ending chooses the format.
    cost
        `query_ms_p50`, `bytes_per_text` or `index_seconds`.

    Raises
    ------
    RunFileError
        If the ending is neither, no cost is known, or the file cannot be written.
    """
    labels = {name: label for label, name in _COST_AXES}
    points = _frontier_points(evaluation, cost)
    if path.suffix.lower() not in {".svg", ".png"}:
        message = f"{path}: a picture is written as .svg or .png"
        raise RunFileError(message)
    if not points:
        message = f"{path}: no row's {labels[cost]} was measured, so there is nothing to draw"
        raise RunFileError(message)
    try:
        if path.suffix.lower() == ".svg":
            plots.save_svg(frontier_plot(points, labels[cost], evaluation.primary), path)
        else:
            save_frontier_png(points, labels[cost], evaluation.primary, path)
    except OSError as error:
        message = f"{path}: {error.strerror or error}; name a place that can be written to"
        raise RunFileError(message) from error


def _sections(report: Report) -> list[str]:
    evaluation = report.evaluation
    pictures = _pictures(report)
    frontiers = [figure for name, figure in pictures.items() if name.startswith("frontier")]
    others = [figure for name, figure in pictures.items() if not name.startswith("frontier")]
    level = f"{evaluation.statistics.confidence:.0%}"
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f'<p class="lead">{escape(_subject(evaluation))}</p>',
        "".join(["<ul class='notes'>", *(f"<li>{escape(note)}</li>" for note in evaluation.notes()), "</ul>"]),
        "<h2>The decision</h2>",
        '<div class="decision">' + "".join(f"<p>{escape(line)}</p>" for line in advise(evaluation).lines) + "</div>",
        "<h2>Quality</h2>",
        f"<p>Means over the judged queries, with {level} intervals.{_LETTERS if evaluation.can_tell else ''}</p>",
        report_tables.quality_table(evaluation),
        f"<h2>Against {escape(evaluation.baseline)}</h2>",
        report_tables.versus_table(evaluation),
        "<h2>Cost</h2>",
        "<p>Greyed rows are dominated: another is at least as good and costs no more in anything.</p>",
        report_tables.cost_table(evaluation),
        _figures(frontiers),
        "<h2>Query by query</h2>",
        _scatter(evaluation),
        "<h2>Where they disagree most</h2>",
        f"<p>Queries on which rows lie farthest apart in {escape(evaluation.primary)}, each less its mean.</p>",
        report_tables.disagreement_table(evaluation, report.marks, _MOST_DISAGREED, evaluation.queries.texts),
    ]
    if any(report.marks.values()):
        parts += ["<p>Means over the queries that bear a mark:</p>"]
        parts += [report_tables.marks_table(evaluation, report.marks)]
    if others:
        parts += ["<h2>Curves</h2>", _figures(others)]
    return [*parts, "<h2>Where this comes from</h2>", report_tables.definitions(_provenance(report))]


def _subject(evaluation: Evaluation) -> str:
    collection = evaluation.collection
    documents = collection.get("documents")
    parts = [f"{evaluation.queries.count:,} judged queries"]
    if collection.get("split"):
        parts[0] += f" ({collection['split']})"
    if documents is not None:
        parts.append(f"{documents:,} documents")
    return f"{' over '.join(parts)}. {len(evaluation.rows)} rows, decided by {evaluation.primary}."


def _pictures(report: Report) -> dict[str, tuple[str, str]]:
    """Return name -> (caption, drawing)."""
    evaluation = report.evaluation
    numbers = {name: number for number, name in enumerate(evaluation.rows)}
    pictures: dict[str, tuple[str, str]] = {}
    for label, cost in _COST_AXES:
        points = _frontier_points(evaluation, cost)
        if len(points) > 1:
            caption = f"{evaluation.primary} against {label}; the dashed line is the frontier of this cost."
            pictures[f"frontier-{cost}"] = caption, frontier_plot(points, label, evaluation.primary)
    if report.runs:
        curves = [
            Series(name, numbers[name], precision_recall(run, evaluation.queries.qrels))
            for name, run in report.runs.items()
            if name in numbers
        ]
        caption = "Precision against recall, interpolated, mean over the judged queries."
        pictures["precision-recall"] = caption, plots.line_plot(curves, "recall", "precision")
    if report.spectra:
        spectra = [
            Series(name, numbers.get(name, len(numbers)), _spectrum(values)) for name, values in report.spectra.items()
        ]
        caption = "Spectra: variance along each principal axis. A steep fall is an anisotropic space."
        pictures["spectra"] = caption, plots.line_plot(spectra, "axis", "variance", log=True)
    if report.cosines:
        histograms = [
            Series(name, numbers.get(name, len(numbers)), _outline(histogram))
            for name, histogram in report.cosines.items()
        ]
        caption = "Cosines of random pairs of texts. Far from 0 means that all texts point the same way."
        pictures["cosines"] = caption, plots.histogram_plot(histograms, "cosine", "share of pairs")
    return pictures


def _frontier_points(evaluation: Evaluation, cost: str) -> list[FrontierPoint]:
    points = []
    for number, row in enumerate(evaluation.rows.values()):
        value = row.cost.to_json().get(cost)
        if value is not None:
            quality = row.measures[evaluation.primary]
            low, high = row.intervals.get(evaluation.primary, (quality, quality))
            points.append(FrontierPoint(row.name, number, float(value), quality, low, high, bool(row.dominated_by)))
    return points


def _spectrum(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return (axis from 1, variance); axes on which nothing varies are rounding, and would flatten the picture."""
    least = 1e-9 * max(values, default=0.0)
    return [(rank, float(value)) for rank, value in enumerate(values, start=1) if value > least]


def _outline(histogram: Histogram) -> list[tuple[float, float]]:
    heights = [*histogram.heights, 0.0]
    total = sum(histogram.heights) or 1.0
    return [(float(edge), height / total) for edge, height in zip(histogram.edges, heights, strict=True)]


def _figures(figures: Sequence[tuple[str, str]]) -> str:
    inner = "".join(
        f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>" for caption, drawing in figures
    )
    return f'<div class="pictures">{inner}</div>' if inner else ""


def _scatter(evaluation: Evaluation) -> str:
    if len(evaluation.rows) < 2:
        return "<p>There is one row: nothing to set side by side.</p>"
    picks = "".join(
        f'<label>{label} <select id="pick-{name}"></select></label>'
        for name, label in (("x", "across"), ("y", "up"), ("measure", "measure"))
    )
    return (
        f'<div class="controls">{picks}</div><div id="scatter"><div>'
        '<svg class="plot" viewBox="0 0 460 440" role="img" aria-label="scores of two rows"></svg></div>'
        '<div><div id="behind" aria-live="polite"></div><div id="gains"></div></div></div>'
        "<noscript><p>This part needs JavaScript; the rest of the page does not.</p></noscript>"
    )


def _scatter_data(report: Report) -> dict[str, Any]:
    evaluation = report.evaluation
    names = list(evaluation.rows)
    measures = [measure.name for measure in evaluation.measures if not (measure.counts or measure.geometric)]
    queries = list(evaluation.queries.qrels)
    rows = list(evaluation.rows.values())
    ranked = [row.name for row in sorted(rows, key=lambda row: -row.measures[evaluation.primary])]
    best = ranked[0]
    # The baseline across and the best up; where they are one, the next best across.
    rivals = [name for name in (evaluation.baseline, *ranked) if name != best]
    return {
        "rows": names,
        "measures": measures,
        "queries": [[q, evaluation.queries.texts.get(q, ""), list(report.marks.get(q, ()))] for q in queries],
        "scores": [[[round(row.per_query[m][q], 5) for q in queries] for row in rows] for m in measures],
        "x": names.index(rivals[0]) if rivals else 0,
        "y": names.index(best),
    }


def _provenance(report: Report) -> dict[str, str]:
    evaluation, statistics = report.evaluation, report.evaluation.statistics
    collection = {f"collection: {name}": str(value) for name, value in evaluation.collection.items()}
    providers = ", ".join(f"{measure.name} by {measure.provider}" for measure in evaluation.measures)
    timed = ", ".join(f"{row.name} {row.cost.timed_queries:,}" for row in evaluation.rows.values())
    return {
        **collection,
        **report.provenance,
        "measures": providers,
        "test": f"paired randomisation, two-sided, {statistics.permutations:,} permutations, Holm's correction",
        "intervals": f"{statistics.confidence:.0%}, bootstrap (BCa), {statistics.resamples:,} resamples",
        "seed": str(statistics.seed),
        "timed queries": timed,
    }
