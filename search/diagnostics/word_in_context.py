"""Does a word mean the same in two sentences? The Word-in-Context test (Pilehvar and Camacho-Collados 2019), by layer.

A layer says "same" where the cosine between the word's two vectors is at or above a threshold, which is the one that
is right most often on the training pairs. A static table gives a word one vector, so it has nothing to say where both
sentences hold the same form; what it can tell apart is only one form of the word from another. All figures are shown.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.progress import Progress, Silent
from indexer.contextual.states import Place, Span, StateReader
from indexer.encoder import WordEncoder
from search.diagnostics.anisotropy import unit
from search.diagnostics.occurrences import window
from search.errors import DiagnosisError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_BLOCK = 1024


class WordPairInContext(NamedTuple):
    """A word in two sentences, and whether it means the same in both."""

    word: str
    first: Place
    second: Place
    same: bool

    @property
    def forms(self) -> tuple[str, str]:
        """The word as it stands in each sentence."""
        return tuple(place.text[slice(*place.span)] for place in (self.first, self.second))  # type: ignore[return-value]


class Threshold(NamedTuple):
    """A cosine from which on two vectors are taken for one sense, and how often that is right where it was fitted."""

    cosine: float
    accuracy: float


class LayerAccuracy(NamedTuple):
    """How often one layer is right on the pairs asked about, and the training pairs' threshold and accuracy."""

    layer: int
    accuracy: float
    threshold: float
    train_accuracy: float


@dataclass(frozen=True, slots=True)
class StaticAccuracy:
    """What one vector a form can do.

    Attributes
    ----------
    accuracy
        Over all pairs, with a threshold from the training pairs.
    same_form, same_form_accuracy
        Pairs whose two forms are equal, where every answer is the same one, and how often it is right.
    other_forms, other_forms_accuracy
        The other pairs.
    unknown
        Pairs with a form that the table lacks; their cosine counts as 0.
    threshold
        From the training pairs.
    """

    accuracy: float
    same_form: int
    same_form_accuracy: float | None
    other_forms: int
    other_forms_accuracy: float | None
    unknown: int
    threshold: float


@dataclass(frozen=True, slots=True)
class SenseEvaluation:
    """The test's outcome: `layers` from 0 to L, and `majority`, the accuracy of one answer for all pairs."""

    model: str
    pairs: int
    train_pairs: int
    layers: tuple[LayerAccuracy, ...]
    static: StaticAccuracy | None
    majority: float
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the figures as `evaluate-senses --json` shows them."""
        static = None
        if self.static is not None:
            static = {name: getattr(self.static, name) for name in StaticAccuracy.__slots__}
        return {
            "model": self.model,
            "pairs": self.pairs,
            "train_pairs": self.train_pairs,
            "majority": self.majority,
            "layers": [layer._asdict() for layer in self.layers],
            "static": static,
            "notes": list(self.notes),
        }


def read_pairs(path: Path | str) -> list[WordPairInContext]:
    """Read pairs from JSON lines with `word`, `sentence1`, `sentence2`, `index1`, `index2` and `label`.

    An index counts tokens parted by single spaces, from 0; `label` is true where the word means the same.

    Raises
    ------
    DiagnosisError
        If the file cannot be read, has no pair, or a line is something else; the line is named.
    """
    place = Path(path)
    pairs = []
    try:
        with place.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    pairs.append(_parse(line, f"{place}:{number}"))
    except (OSError, UnicodeDecodeError) as error:
        message = f"{place} cannot be read ({error}); expected JSON lines with a word in two sentences each"
        raise DiagnosisError(message) from error
    if not pairs:
        message = f"{place} holds no pair; expected JSON lines with a word in two sentences each"
        raise DiagnosisError(message)
    return pairs


def _parse(line: str, where: str) -> WordPairInContext:
    try:
        record = json.loads(line)
        places = [_token_place(record[f"sentence{side}"], record[f"index{side}"]) for side in (1, 2)]
        return WordPairInContext(str(record["word"]), places[0], places[1], _label(record["label"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error)
        message = f"{where}: {reason}; expected an object with word, sentence1, sentence2, index1, index2 and label"
        raise DiagnosisError(message) from error


def _label(value: object) -> bool:
    if not isinstance(value, bool):
        message = f"label is {value!r}, not true or false"
        raise TypeError(message)
    return value


def _token_place(text: str, index: int) -> Place:
    tokens = text.split(" ")
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(tokens) or not tokens[index]:
        message = f"no token {index!r} among the {len(tokens)} of {text[:60]!r}"
        raise ValueError(message)
    start = sum(len(token) + 1 for token in tokens[:index])
    return Place(text, Span(start, start + len(tokens[index])))


def evaluate_senses(
    pairs: Sequence[WordPairInContext],
    train: Sequence[WordPairInContext],
    reader: StateReader,
    *,
    static: WordEncoder | None = None,
    sample: int | None = None,
    progress: Progress | None = None,
) -> SenseEvaluation:
    """Measure each layer, and a static table, on pairs, with thresholds from training pairs.

    Parameters
    ----------
    pairs
        What is asked about.
    train
        Where the thresholds come from.
    reader
        The model.
    static
        The static encoder.
    sample
        Most training pairs used, drawn at random with a fixed seed; None: all of them.
    progress
        Told of each block of pairs.

    Raises
    ------
    DiagnosisError
        If there are no pairs on one side.
    """
    if not pairs or not train:
        message = f"found {len(pairs)} pairs to ask about and {len(train)} to learn from; give both"
        raise DiagnosisError(message)
    progress = progress or Silent()
    notes = []
    if sample is not None and sample < len(train):
        chosen = np.sort(np.random.default_rng(0).choice(len(train), sample, replace=False))
        notes.append(f"thresholds come from {sample:,} of {len(train):,} training pairs")
        train = [train[row] for row in chosen]
    truth, train_truth = (np.array([pair.same for pair in held], dtype=np.bool_) for held in (pairs, train))
    cosines = pair_cosines([*train, *pairs], reader, progress)
    layers = []
    for layer, values in enumerate(cosines):
        threshold = best_threshold(values[: len(train)], train_truth)
        accuracy = float(((values[len(train) :] >= threshold.cosine) == truth).mean())
        layers.append(LayerAccuracy(layer, accuracy, threshold.cosine, threshold.accuracy))
    return SenseEvaluation(
        model=reader.name,
        pairs=len(pairs),
        train_pairs=len(train),
        layers=tuple(layers),
        static=None if static is None else _static_accuracy(pairs, train, static),
        majority=float(max(truth.mean(), 1 - truth.mean())),
        notes=tuple(notes),
    )


def pair_cosines(pairs: Sequence[WordPairInContext], reader: StateReader, progress: Progress) -> Floats:
    """Return the cosine between a word's two vectors by layer, all layers from one pass: (1 + L, n) float64."""
    out = np.empty((1 + reader.layers, len(pairs)))
    progress.start("reading words in context", len(pairs), "pairs")
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        # A sentence occurs with several words: one pass each for distinct (sentence, word) places.
        places = list(dict.fromkeys(place for pair in block for place in (pair.first, pair.second)))
        row_of = {place: row for row, place in enumerate(places)}
        vectors = unit(reader.word_states([_fitting(place, reader) for place in places]))
        first, second = ([row_of[place] for place in side] for side in zip(*(pair[1:3] for pair in block), strict=True))
        out[:, start : start + len(block)] = np.einsum("lnd,lnd->ln", vectors[:, first], vectors[:, second])
        progress.advance(len(block))
    progress.finish()
    return out


def _fitting(place: Place, reader: StateReader) -> Place:
    # A piece has at least one byte, so a text this short always fits.
    budget = reader.tokenizer.max_length - reader.tokenizer.special_tokens
    return place if len(place.text.encode("utf-8", "replace")) < budget else window(place, reader)[0]


def best_threshold(cosines: Floats, same: Flags) -> Threshold:
    """Return the threshold that is right most often where "same" is said from it on, the lowest of equals.

    It lies half-way between two neighbouring values, so that rounding does not decide.
    """
    order = np.argsort(cosines, kind="stable")
    values, labels = cosines[order], same[order].astype(np.int64)
    # Cutting before place i: what lies below is called different, the rest same.
    right = np.concatenate([[0], np.cumsum(1 - labels)]) + labels.sum() - np.concatenate([[0], np.cumsum(labels)])
    # Equal cosines cannot be parted.
    allowed = np.concatenate([[True], values[1:] > values[:-1], [True]])
    best = int(np.where(allowed, right, -1).argmax())
    if best == 0:
        cut = values[0] - 1e-6
    elif best == len(values):
        cut = values[-1] + 1e-6
    else:
        cut = (values[best - 1] + values[best]) / 2
    return Threshold(float(cut), float(right[best] / len(values)))


def _static_accuracy(
    pairs: Sequence[WordPairInContext], train: Sequence[WordPairInContext], static: WordEncoder
) -> StaticAccuracy:
    values, known = _form_cosines(pairs, static)
    threshold = best_threshold(_form_cosines(train, static)[0], np.array([pair.same for pair in train]))
    right = (values >= threshold.cosine) == np.array([pair.same for pair in pairs])
    equal = np.array([pair.forms[0].lower() == pair.forms[1].lower() for pair in pairs])
    return StaticAccuracy(
        accuracy=float(right.mean()),
        same_form=int(equal.sum()),
        same_form_accuracy=float(right[equal].mean()) if equal.any() else None,
        other_forms=int((~equal).sum()),
        other_forms_accuracy=float(right[~equal].mean()) if not equal.all() else None,
        unknown=int((~known).sum()),
        threshold=threshold.cosine,
    )


def _form_cosines(pairs: Iterable[WordPairInContext], static: WordEncoder) -> tuple[Floats, Flags]:
    sides = list(zip(*(pair.forms for pair in pairs), strict=True))
    first, second = (unit(static.encode(list(side))) for side in sides)
    # Rounded, so that two equal forms give 1 exactly and stay ties.
    known: Flags = np.logical_and(first.any(axis=1), second.any(axis=1))
    return np.round((first * second).sum(axis=1), 6), known
