"""One word in several contexts: where its vectors part on their way through the layers, and which neighbours moved it.

The *parting layer* is the first one by which half of the word's largest separation has happened. Separation is
1 - (c - a) / (1 - a): c is the cosine between the word's vectors, a the mean cosine of random tokens in that layer,
so it is 0 for equal vectors and 1 for vectors as far apart as any two tokens. An absolute threshold on the cosine
would depend on how narrow each layer's space is, and so would the place of the steepest fall; half of the way is a
place on the word's own path. Where the largest separation stays below `MOVED`, the word is said not to part.
Contexts of one sense part a little, too: two curves side by side, one of each kind, tell sense from wording.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from indexer.contextual.states import Span, StateReader
from indexer.encoder import WordEncoder
from search.diagnostics.anisotropy import Floats, background_texts, token_anisotropy, unit
from search.diagnostics.occurrences import Occurrence, choose, neighbours
from search.errors import DiagnosisError

#: Least separation of contexts that is called a parting: below it lie differences of position alone.
MOVED = 0.05

_MOST_NEIGHBOURS = 40


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another word of a context, and what it does to the word in question.

    Attributes
    ----------
    word, start, end
        The neighbour and its characters in the context.
    attention
        By layer 1 to L: the share of its attention that the word gives to the neighbour, averaged over heads and
        over the word's pieces, summed over the neighbour's.
    effect
        By layer 0 to L: 1 - cosine between the word's vector and its vector when the neighbour is masked.
    """

    word: str
    start: int
    end: int
    attention: tuple[float, ...]
    effect: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SenseContext:
    """One context of the word.

    Attributes
    ----------
    text
        What was read: the context, or the window around the word.
    start, end
        The word's characters in it.
    pieces
        The word's pieces; the vectors of several are averaged.
    neighbours
        The other words, in order of the text; of a long text only those nearest to the word.
    attention_to_itself, attention_to_special
        By layer 1 to L: attention that stays with the word's own pieces, and that goes to [CLS] and [SEP].
    """

    text: str
    start: int
    end: int
    pieces: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    attention_to_itself: tuple[float, ...]
    attention_to_special: tuple[float, ...]

    def moved_most(self, layer: int = -1) -> list[Neighbour]:
        """Return the neighbours by the effect of masking them on the word's vector at a layer, largest first."""
        return sorted(self.neighbours, key=lambda neighbour: -neighbour.effect[layer])


@dataclass(frozen=True, slots=True)
class SenseLayer:
    """One layer, averaged over all pairs of contexts.

    Attributes
    ----------
    layer
        0 (after the embeddings, positions included) to L.
    cosine
        Mean cosine between the word's vectors.
    anisotropy
        Mean cosine of two random tokens in this layer.
    corrected
        Their difference.
    separation
        1 - corrected / (1 - anisotropy).
    """

    layer: int
    cosine: float
    anisotropy: float
    corrected: float
    separation: float


@dataclass(frozen=True, slots=True)
class PairCurve:
    """Cosines between the word's vectors in two contexts (numbered from 0), by layer 0 to L."""

    first: int
    second: int
    cosines: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SenseReport:
    """A word in its contexts.

    Attributes
    ----------
    word, model
        What was looked at, and with which model.
    contexts
        The contexts.
    layers
        Layer by layer, averaged over pairs.
    pairs
        Each pair's cosines.
    static_cosine
        Cosine between the word's static vectors in any two contexts: 1; None where the static table lacks the word.
    input_rows_identical
        Whether the word's rows of the input embeddings are the same in all contexts.
    input_rows_difference
        Largest absolute difference between them.
    parting_layer
        Where the senses part (see the module), None where they do not.
    notes
        What was done that the reader should know.
    """

    word: str
    model: str
    contexts: tuple[SenseContext, ...]
    layers: tuple[SenseLayer, ...]
    pairs: tuple[PairCurve, ...]
    static_cosine: float | None
    input_rows_identical: bool
    input_rows_difference: float
    parting_layer: int | None
    notes: tuple[str, ...]


def sense_report(
    word: str,
    contexts: Sequence[str],
    reader: StateReader,
    *,
    occurrence: int | Sequence[int] = 1,
    background: Sequence[str] = (),
    static: WordEncoder | None = None,
) -> SenseReport:
    """Follow a word through a model's layers in two or more contexts.

    Parameters
    ----------
    word
        The word; upper and lower case are equal in finding it.
    contexts
        Texts that hold it.
    reader
        The model.
    occurrence
        Which occurrence to take where a context holds several, from 1; one number for all contexts or one for each.
    background
        Texts that random tokens are drawn from; general news where there are none.
    static
        The static encoder to stand beside it.

    Raises
    ------
    DiagnosisError
        If there are fewer than two contexts, or the word cannot be found or read in one of them.
    """
    word = word.strip()
    if not word:
        message = "no word to look at; give a word that stands in every context"
        raise DiagnosisError(message)
    if len(contexts) < 2:
        message = f"a word's senses show between contexts: give two or more, found {len(contexts)}"
        raise DiagnosisError(message)
    numbers = [occurrence] * len(contexts) if isinstance(occurrence, int) else list(occurrence)
    if len(numbers) != len(contexts):
        message = f"found {len(numbers)} occurrence numbers for {len(contexts)} contexts; give one for each"
        raise DiagnosisError(message)
    chosen = [
        choose(word, text, reader, number=number, name=f"context {place}")
        for place, (text, number) in enumerate(zip(contexts, numbers, strict=True), start=1)
    ]
    views = [_view(found, reader) for found in chosen]
    vectors = np.stack([view.vectors for view in views], axis=1)
    # A fixed seed: the same question gets the same answer.
    texts = [text for text in background if text.strip()] or background_texts()
    anisotropy = token_anisotropy(reader, texts, np.random.default_rng(0))
    pairs = _pairs(vectors)
    layers = tuple(_layer(number, pairs, float(anisotropy[number])) for number in range(len(anisotropy)))
    difference = _input_difference([view.input_row for view in views])
    return SenseReport(
        word=word,
        model=reader.name,
        contexts=tuple(view.context for view in views),
        layers=layers,
        pairs=pairs,
        static_cosine=_static_cosine(static, chosen),
        input_rows_identical=difference == 0.0 and len({view.context.pieces for view in views}) == 1,
        input_rows_difference=difference,
        parting_layer=parting_layer([layer.separation for layer in layers]),
        notes=tuple(_notes(word, chosen, views)),
    )


def parting_layer(separations: Sequence[float]) -> int | None:
    """Return the first layer with half of the largest separation, None where that is below `MOVED`."""
    largest = max(separations)
    if largest < MOVED:
        return None
    return next(layer for layer, separation in enumerate(separations) if separation >= largest / 2)


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """A context with the word's (1 + L, d) vectors and its (p, d) input rows."""

    context: SenseContext
    vectors: NDArray[np.float32]
    input_row: NDArray[np.float32]
    left_out: int


def _view(found: Occurrence, reader: StateReader) -> _View:
    place = found.place
    states = reader.read(place.text)
    rows = states.rows(place.span)
    vectors = states.states[:, rows].mean(axis=1)
    others = neighbours(place)
    near = sorted(others, key=lambda span: _distance(span, place.span))[:_MOST_NEIGHBOURS]
    spans = sorted(span for span in near if len(states.rows(span)))
    pieces_of = [states.rows(span) for span in spans]
    variants = reader.masked_states(states, pieces_of)
    attention = states.attentions.mean(axis=1)[:, rows].mean(axis=1)
    words = []
    for span, pieces, variant in zip(spans, pieces_of, variants, strict=True):
        moved = 1.0 - (unit(variant[:, rows].mean(axis=1)) * unit(vectors)).sum(axis=1)
        words.append(
            Neighbour(
                place.text[span.start : span.end],
                span.start,
                span.end,
                _numbers(attention[:, pieces].sum(axis=1)),
                _numbers(np.maximum(moved, 0.0)),
            )
        )
    context = SenseContext(
        text=place.text,
        start=place.span.start,
        end=place.span.end,
        pieces=tuple(states.pieces[row] for row in rows),
        neighbours=tuple(words),
        attention_to_itself=_numbers(attention[:, rows].sum(axis=1)),
        attention_to_special=_numbers(attention[:, states.special].sum(axis=1)),
    )
    return _View(context, vectors, states.input_rows[rows], len(others) - len(spans))


def _distance(span: Span, word: Span) -> int:
    return max(word.start - span.end, span.start - word.end)


def _pairs(vectors: NDArray[np.float32]) -> tuple[PairCurve, ...]:
    units = unit(vectors)
    return tuple(
        PairCurve(first, second, _numbers(np.minimum((units[:, first] * units[:, second]).sum(axis=1), 1.0)))
        for first, second in combinations(range(units.shape[1]), 2)
    )


def _layer(number: int, pairs: Sequence[PairCurve], anisotropy: float) -> SenseLayer:
    cosine = sum(pair.cosines[number] for pair in pairs) / len(pairs)
    corrected = cosine - anisotropy
    # A space in which all tokens are alike has no room to part in.
    separation = 1.0 - corrected / (1.0 - anisotropy) if anisotropy < 1.0 - 1e-9 else 0.0
    return SenseLayer(number, cosine, anisotropy, corrected, separation)


def _input_difference(rows: Sequence[NDArray[np.float32]]) -> float:
    first = rows[0]
    return max(
        # Cut into other pieces (a capital letter, a space before), only the means can be compared.
        float(np.abs(row - first).max())
        if row.shape == first.shape
        else float(np.abs(row.mean(axis=0) - first.mean(axis=0)).max())
        for row in rows
    )


def _static_cosine(static: WordEncoder | None, chosen: Sequence[Occurrence]) -> float | None:
    if static is None:
        return None
    forms = list(dict.fromkeys(found.place.text[slice(*found.place.span)] for found in chosen))
    vectors = unit(static.encode(forms))
    cosines = vectors @ vectors.T
    return float(min(1.0, cosines.min())) if vectors.any(axis=1).all() else None


def _notes(word: str, chosen: Sequence[Occurrence], views: Sequence[_View]) -> list[str]:
    notes = []
    for number, (found, view) in enumerate(zip(chosen, views, strict=True), start=1):
        pieces = view.context.pieces
        if len(pieces) > 1:
            shown = " ".join(pieces[:8]) + (" ..." if len(pieces) > 8 else "")
            notes.append(f"context {number}: {word!r} is {len(pieces)} pieces ({shown}); their vectors are averaged")
        if found.total > 1:
            notes.append(
                f"context {number}: {word!r} stands there {found.total} times; occurrence {found.number} is taken"
            )
        if found.cut:
            notes.append(f"context {number} is longer than the model reads; the window around {word!r} is taken")
        if view.left_out:
            notes.append(f"context {number}: {view.left_out} words further away are not masked one by one")
    return notes


def _numbers(values: Floats | NDArray[np.float32]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
