"""A word's senses as a person reads them, with the built-in models opened on the way."""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from corpora.progress import Progress, Silent
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import StateReader, open_states
from indexer.encoder import WordEncoder
from search.diagnostics.corpus_senses import CorpusSenses
from search.diagnostics.lens import LensGrid
from search.diagnostics.senses import SenseReport, sense_report
from search.diagnostics.word_in_context import SenseEvaluation

_BAR = 20


@cache
def open_reader(model: str = "") -> StateReader:
    """Open a model for looking inside; the built-in one where no name is given."""
    return open_states(TransformerSpec(model=model))


@cache
def static_words() -> WordEncoder:
    """Return the built-in GloVe table as an encoder of single words."""
    from indexer.static.averaging import averaged
    from indexer.static.word_vectors import load_word_vectors

    vectors = load_word_vectors("glove")
    return averaged(list(vectors.words), np.asarray(vectors.matrix), name=vectors.name)


def follow(
    word: str,
    contexts: Sequence[str],
    *,
    model: str = "",
    occurrence: int = 1,
    progress: Progress | None = None,
) -> SenseReport:
    """Follow a word through a model's layers in two or more contexts, the static vector beside it.

    Raises
    ------
    DiagnosisError
        If there are fewer than two contexts, or the word cannot be found in one of them.
    """
    progress = progress or Silent()
    progress.start("opening the model", None, "models")
    try:
        reader, static = open_reader(model), static_words()
    finally:
        progress.finish()
    progress.start("masking neighbours one by one", None, "contexts")
    try:
        return sense_report(word, contexts, reader, occurrence=occurrence, static=static)
    finally:
        progress.finish()


def sense_rows(report: SenseReport) -> Iterator[dict[str, str]]:
    """Yield a row a layer."""
    for layer in report.layers:
        static = "-" if report.static_cosine is None else f"{report.static_cosine:.2f}"
        filled = round(_BAR * min(1.0, max(0.0, layer.cosine)))
        yield {
            "layer": str(layer.layer),
            "cosine": f"{layer.cosine:.3f}",
            "random tokens": f"{layer.anisotropy:.3f}",
            "corrected": f"{layer.corrected:+.3f}",
            "static": static,
            "": "█" * filled + "░" * (_BAR - filled),
            " ": "the senses part" if layer.layer == report.parting_layer else "",
        }


def sense_lines(report: SenseReport) -> Iterator[str]:
    """Yield what else is to be said: the input rows, what the columns are, and what was done on the way."""
    same = "identical" if report.input_rows_identical else f"different by {report.input_rows_difference:.2g}"
    yield f"the word's rows of the input embeddings: {same} in all contexts ({report.model})"
    if report.static_cosine is not None:
        yield "static: the cosine of the word's vectors in a static table, the same whatever stands beside it"
    if report.parting_layer is None:
        yield "the contexts do not part: in no layer are the word's vectors further apart than by its place in the text"
    yield "random tokens: any two tokens of general news in that layer; corrected: the cosine less that"
    yield from report.notes


def lens_rows(grid: LensGrid) -> Iterator[dict[str, str]]:
    """Yield a row a token: the nearest item by layer."""
    for place, piece in enumerate(grid.pieces):
        cells = {
            f"layer {layer}": cells[place][0].piece if cells[place] else "" for layer, cells in enumerate(grid.cells)
        }
        yield {"token": piece, **cells}


def corpus_sense_rows(found: CorpusSenses) -> Iterator[dict[str, str]]:
    """Yield a row a group of occurrences, with example lines."""
    for number, group in enumerate(found.groups, start=1):
        for place, example in enumerate(group.examples):
            first = place == 0
            yield {
                "sense": str(number) if first else "",
                "occurrences": f"{group.size} of {found.read}" if first else "",
                "cosine to its centre": f"{example.cosine:.2f}",
                "for instance": example.line,
            }


def accuracy_rows(found: SenseEvaluation) -> Iterator[dict[str, str]]:
    """Yield a row a layer, and one for the static table."""
    for layer in found.layers:
        yield {
            "": f"layer {layer.layer}",
            "accuracy": f"{layer.accuracy:.3f}",
            "threshold": f"{layer.threshold:.3f}",
            "on the training pairs": f"{layer.train_accuracy:.3f}",
        }
    if found.static is not None:
        alike = _share(found.static.same_form, found.static.same_form_accuracy, "of one form")
        others = _share(found.static.other_forms, found.static.other_forms_accuracy, "of other forms")
        yield {
            "": "static",
            "accuracy": f"{found.static.accuracy:.3f}",
            "threshold": alike,
            "on the training pairs": others,
        }


def _share(pairs: int, accuracy: float | None, kind: str) -> str:
    return f"no pairs {kind}" if accuracy is None else f"{pairs:,} pairs {kind}: {accuracy:.3f}"
