"""Do alike texts have near vectors? Spearman's rank correlation with human scores, by layer, raw and whitened.

The semantic textual similarity test (Cer et al. 2017: STS benchmark) and its forerunners on pairs of words. Whitening
takes its statistics from other texts than those asked about, which are given apart. Where its strength is `auto`, that
goes by the longer and the shorter half of these texts, as an index goes by whole texts and sentences. Every figure has
its 95% interval (Bonett and Wright 2000, for Spearman: z = artanh r with variance (1 + r^2 / 2) / (n - 3)).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.encoder import Encoder
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening, WhiteningMode, WhiteningSpec
from indexer.whitening_strength import GeneralSpace
from search.diagnostics.layer_survey import LayerReader, pooled_states
from search.diagnostics.similarity_files import TextPair, distinct_texts
from search.diagnostics.word_similarity import rank_correlation
from search.errors import DiagnosisError

_BLOCK = 1024


class Correlation(NamedTuple):
    """Spearman's r over the covered pairs, and its 95% interval; all None where it cannot be computed."""

    spearman: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SimilarityRow:
    """One kind of vectors.

    Attributes
    ----------
    name
        What the vectors are.
    layer
        The layer, None for a static table and for a model's own output.
    raw, whitened
        How far their cosines agree with people; `whitened` is None without texts to take the statistics from.
    covered
        Pairs of which both sides have a vector; the others are left out.
    """

    name: str
    layer: int | None
    raw: Correlation
    whitened: Correlation | None
    covered: int

    def as_json(self) -> dict[str, Any]:
        """Return a JSON object: the correlations under `raw` and `whitened`, the intervals beside them."""
        whitened = self.whitened or Correlation(None, None, None)
        return {
            **({} if self.layer is None else {"layer": self.layer}),
            "name": self.name,
            "raw": self.raw.spearman,
            "raw_interval": [self.raw.low, self.raw.high],
            "whitened": whitened.spearman,
            "whitened_interval": [whitened.low, whitened.high],
            "covered": self.covered,
        }


@dataclass(frozen=True, slots=True)
class SimilarityEvaluation:
    """The outcome for `pairs` pairs; `statistics` texts gave the whitening its statistics."""

    pairs: int
    statistics: int
    static: SimilarityRow | None
    layers: tuple[SimilarityRow, ...]
    output: SimilarityRow | None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[SimilarityRow]:
        """All rows, the static one first, then by layer, then the model's output."""
        return [row for row in (self.static, *self.layers, self.output) if row is not None]

    def as_json(self) -> dict[str, Any]:
        """Return the figures as `evaluate-similarity --json` shows them."""
        return {
            "pairs": self.pairs,
            "statistics_texts": self.statistics,
            "static": None if self.static is None else self.static.as_json(),
            "layers": [row.as_json() for row in self.layers],
            "output": None if self.output is None else self.output.as_json(),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is measured: a static table, the layers of a model, and the model's own output; each may be missing."""

    static: Encoder | None = None
    layers: LayerReader | None = None
    output: Encoder | None = None
    static_name: str = "static"
    output_name: str = "output"


def evaluate_similarity(
    pairs: Sequence[TextPair],
    candidates: Candidates,
    *,
    statistics: Sequence[str] = (),
    whitening: WhiteningSpec | None = None,
    progress: Progress | None = None,
) -> SimilarityEvaluation:
    """Correlate cosines with what people said, for each kind of vectors.

    Parameters
    ----------
    pairs
        What is asked about.
    candidates
        What is measured.
    statistics
        Texts that the whitening is fitted on; without any nothing is whitened.
    whitening
        How strong; `auto` where None.
    progress
        Told of the texts that are read.

    Raises
    ------
    DiagnosisError
        If there are fewer than two pairs.
    """
    if len(pairs) < 2:
        message = f"found {len(pairs)} pair; a rank correlation needs two or more"
        raise DiagnosisError(message)
    progress = progress or Silent()
    texts = distinct_texts(pairs)
    known = list(dict.fromkeys(text for text in statistics if text.strip()))
    judge = _Judge(pairs, texts, known, whitening or WhiteningSpec(WhiteningMode.AUTO))
    every = [*texts, *known]
    static = output = None
    layers: tuple[SimilarityRow, ...] = ()
    if candidates.static is not None:
        static = judge.row(candidates.static_name, None, _encoded(candidates.static.encode, every, "table", progress))
    if candidates.layers is not None:
        states = pooled_states(candidates.layers, every, "reading all layers", progress)
        layers = tuple(judge.row(f"layer {at}", at, layer) for at, layer in enumerate(states))
    if candidates.output is not None:
        vectors = _encoded(candidates.output.encode, every, "model", progress)
        output = judge.row(candidates.output_name, None, vectors)
    notes = [] if known else ["nothing is whitened without texts to take the statistics from (--statistics FILE)"]
    return SimilarityEvaluation(len(pairs), len(known), static, layers, output, (*notes, *judge.notes))


def similarity_rows(found: SimilarityEvaluation) -> Iterator[dict[str, str]]:
    """Yield a row a kind of vectors for a table."""
    for row in found.rows:
        cells = {"": row.name, "raw": _shown(row.raw), "95% interval": _interval(row.raw)}
        if row.whitened is not None:
            cells |= {"whitened": _shown(row.whitened), "its interval": _interval(row.whitened)}
        yield {**cells, "pairs": f"{row.covered:,}"}


def correlation(cosines: NDArray[np.float64], scores: NDArray[np.float64]) -> Correlation:
    """Return Spearman's correlation of (n,) cosines and scores with its 95% interval."""
    found, n = rank_correlation(cosines, scores), len(cosines)
    if math.isnan(found):
        return Correlation(None, None, None)
    if n < 4 or abs(found) >= 1.0:
        return Correlation(found, None, None)
    half = 1.959964 * math.sqrt((1.0 + found**2 / 2.0) / (n - 3))
    return Correlation(found, math.tanh(math.atanh(found) - half), math.tanh(math.atanh(found) + half))


class _Judge:
    """The pairs, and which rows of vectors belong to them: first the m texts asked about, then the statistics'."""

    def __init__(
        self, pairs: Sequence[TextPair], texts: Sequence[str], known: Sequence[str], whitening: WhiteningSpec
    ) -> None:
        row_of = {text: row for row, text in enumerate(texts)}
        self._first = np.array([row_of[pair.first] for pair in pairs])
        self._second = np.array([row_of[pair.second] for pair in pairs])
        self._scores = np.array([pair.score for pair in pairs], dtype=np.float64)
        self._texts, self._known, self._whitening = len(texts), len(known), whitening
        self._by_length = np.argsort([len(text) for text in known], kind="stable").astype(np.int64)
        self.notes: list[str] = []

    def row(self, name: str, layer: int | None, vectors: Vectors) -> SimilarityRow:
        """Measure (m + s, d) vectors of any length, the last s of which the whitening is fitted on."""
        units = normalize(vectors)
        asked, known = units[: self._texts], units[self._texts :]
        covered = asked[self._first].any(axis=1) & asked[self._second].any(axis=1)
        whitened = None
        if self._known and self._whitening.mode is not WhiteningMode.NONE:
            fitted = Whitening.fit(known, self._whitening, general=self._space(known))
            self.notes += [f"{name}: {note}" for note in fitted.notes]
            whitened = self._correlation(normalize(fitted.transform(asked)), covered)
        return SimilarityRow(name, layer, self._correlation(asked, covered), whitened, int(covered.sum()))

    def _space(self, known: Vectors) -> GeneralSpace | None:
        """Measure the space by the longer and the shorter half of the statistics' texts: what `auto` goes by."""
        if self._whitening.mode is not WhiteningMode.AUTO:
            return None
        half = len(self._by_length) // 2
        return GeneralSpace.measure(known[self._by_length[-half:]], known[self._by_length[:half]]) if half else None

    def _correlation(self, units: Vectors, covered: NDArray[np.bool_]) -> Correlation:
        sides = (units[side[covered]] for side in (self._first, self._second))
        return correlation(np.einsum("nd,nd->n", *sides, dtype=np.float64), self._scores[covered])


def _encoded(
    encode: Callable[[Sequence[str]], Vectors], texts: Sequence[str], what: str, progress: Progress
) -> Vectors:
    progress.start(f"encoding with the {what}", len(texts), "texts")
    parts = []
    try:
        for start in range(0, len(texts), _BLOCK):
            parts.append(encode(texts[start : start + _BLOCK]))
            progress.advance(len(parts[-1]))
    finally:
        progress.finish()
    return np.concatenate(parts)


def _shown(found: Correlation) -> str:
    return "-" if found.spearman is None else f"{found.spearman:.4f}"


def _interval(found: Correlation) -> str:
    return "-" if found.low is None or found.high is None else f"{found.low:.3f} to {found.high:.3f}"
