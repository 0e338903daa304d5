"""The report of an evaluated index: the page with spectra, cosines, marks of queries and where it all came from."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from corpora.progress import Progress
from indexer.encoder import Encoder
from indexer.errors import FactoryError
from search.diagnostics.index_geometry import SpaceReport, index_geometry
from search.evaluation.evaluation import Evaluation
from search.evaluation.marks import query_marks
from search.presentation.report import Histogram, Report, write_pictures, write_report
from search.ranking import Run
from search.retrieval.searcher import Searcher

_PACKAGES = ("twindex", "faiss-cpu", "whoosh3", "openvino", "numpy", "ir-measures")
_SAMPLE = 2000


def report_index(
    searcher: Searcher,
    evaluation: Evaluation,
    runs: Mapping[str, Run],
    path: Path,
    *,
    progress: Progress,
    pictures: Path | None = None,
) -> None:
    """Write the report of an evaluation of an index, and its pictures as files into a folder where one is given.

    Raises
    ------
    RunFileError
        If the file cannot be written.
    """
    spaces: dict[str, SpaceReport] = {}
    for name in searcher.names:
        # Some kinds of vector index give nothing back that could be looked at.
        with suppress(FactoryError):
            spaces |= index_geometry(searcher.index, [name], progress=progress, sample=_SAMPLE)
    report = Report(
        evaluation=evaluation,
        runs=runs,
        marks=dict(_marks(searcher, evaluation)),
        spectra={name: space.searched.spectrum for name, space in spaces.items()},
        cosines={name: _histogram(space) for name, space in spaces.items()},
        provenance=dict(_provenance(searcher, evaluation)),
    )
    write_report(report, path)
    if pictures is not None:
        write_pictures(report, pictures)


def report_runs(evaluation: Evaluation, runs: Mapping[str, Run], path: Path, *, pictures: Path | None = None) -> None:
    """Write the report of an evaluation of run files, of which there are no spaces and no costs to show.

    Raises
    ------
    RunFileError
        If the file or a picture cannot be written.
    """
    report = Report(
        evaluation=evaluation,
        runs=runs,
        marks={query: query_marks(text) for query, text in evaluation.queries.texts.items()},
        provenance=dict(_machine(evaluation)),
    )
    write_report(report, path)
    if pictures is not None:
        write_pictures(report, pictures)


def _histogram(space: SpaceReport) -> Histogram:
    found = space.searched.histogram
    total = sum(found.counts) or 1
    return Histogram(found.edges, [count / total for count in found.counts])


def _marks(searcher: Searcher, evaluation: Evaluation) -> Iterator[tuple[str, list[str]]]:
    documents = searcher.index.documents
    tables = [name for name in searcher.names if searcher.coverage(name, "") is not None]
    for query_id, text in evaluation.queries.texts.items():
        grades = evaluation.queries.qrels[query_id]
        relevant = [doc_id for doc_id, grade in grades.items() if grade > 0 and documents.holds(doc_id)]
        stored = [found for doc_id in relevant if (found := documents.fetch(doc_id)) is not None]
        coverage = searcher.coverage(tables[0], text) if tables else None
        # A document whose first passage is not all of it is longer than the window.
        beyond = any(found.stop < len(found.document.searchable_text) for found in stored)
        yield (
            query_id,
            query_marks(
                text,
                [found.document.searchable_text for found in stored],
                unknown=coverage.unknown if coverage is not None else (),
                beyond_window=beyond,
            ),
        )


def _provenance(searcher: Searcher, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    manifest = searcher.index.manifest
    yield from _machine(evaluation)
    window = manifest.window
    kind = "one passage a document, cut" if window["whole"] else f"overlapping by {window['overlap']}"
    yield (
        "index",
        f"{manifest.documents:,} documents, {manifest.passages:,} passages, {manifest.texts:,} different texts",
    )
    yield "window", f"{window['budget']} word pieces, {kind}"
    for name in searcher.names:
        record = searcher.index.record(name)
        parts = [record.spec.notation(), record.model]
        if record.has_vectors:
            weights = _weights_hash(searcher.index.vectors(name).encoder)
            parts += [f"weights {weights[:16]}"] if weights else []
            parts += [f"encoder {record.encoder[:16]}", record.factory]
        yield name, ", ".join(part for part in parts if part)


def _weights_hash(encoder: Encoder) -> str:
    """Return the SHA-256 of a contextual model's weights, "" where the encoder is no such model's."""
    space = getattr(encoder, "space", None) or getattr(getattr(encoder, "description", None), "space", None)
    return str(getattr(space, "weights_sha256", ""))


def _machine(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    yield "date", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    system = f"{platform.system()}, Python {platform.python_version()}"
    yield "machine", f"{processor_name()}, {os.cpu_count()} threads, {system}"
    yield "packages", ", ".join(f"{package} {version(package)}" for package in _PACKAGES)
    yield "seed", str(evaluation.statistics.seed)


def processor_name() -> str:
    """Return what the processor calls itself, else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()
