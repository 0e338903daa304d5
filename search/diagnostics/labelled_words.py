"""Words with labelled senses: occurrences of a collection, or pairs of a file; and a probe run on either."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpora.catalog import open_collection
from corpora.collection import Collection
from corpora.progress import Progress
from indexer.contextual.states import Place, Span, StateReader
from search.diagnostics.occurrences import occurrences, window
from search.diagnostics.probe import PairStates, Probe, probe_pairs, probe_senses
from search.diagnostics.word_in_context import WordPairInContext, read_pairs
from search.diagnostics.word_senses import open_reader
from search.errors import DiagnosisError
from search.json_values import json_value

_BLOCK = 64
#: Letters that an inflected form may add: banks, matches, lighter, pitching.
_ENDING = 3

Floats = NDArray[np.float32]


class LabelledWord(NamedTuple):
    """A word where it stands, and its sense there."""

    word: str
    sense: str
    place: Place


@dataclass(frozen=True, slots=True)
class LabelledWords:
    """Occurrences with senses; `left_out` counts the documents that name a word and do not hold it."""

    occurrences: tuple[LabelledWord, ...]
    left_out: int


def labelled_words(collection: Collection) -> LabelledWords:
    """Find the first occurrence of the word that each document is labelled with, in its metadata `word` and `sense`.

    The word itself goes before an inflected form of it.

    Raises
    ------
    DiagnosisError
        If no document is labelled.
    """
    found, left_out = [], 0
    for document in collection.documents():
        word, sense = (str(document.metadata.get(field) or "").strip() for field in ("word", "sense"))
        if not (word and sense):
            continue
        text = document.searchable_text
        span = next(occurrences(word, text), None) or _inflected(word, text)
        if span is None:
            left_out += 1
        else:
            found.append(LabelledWord(word, sense, Place(text, span)))
    if not found:
        message = (
            f"no document of {collection.name} names a word and its sense; a probe needs documents with `word` and "
            "`sense` in their metadata (as `senses` has), or a file of pairs of sentences"
        )
        raise DiagnosisError(message)
    return LabelledWords(tuple(found), left_out)


def _inflected(word: str, text: str) -> Span | None:
    match = re.search(rf"(?<!\w){re.escape(word)}\w{{1,{_ENDING}}}(?!\w)", text, re.IGNORECASE)
    return None if match is None else Span(*match.span())


def holds_pairs(path: Path) -> bool:
    """Return whether a file begins as a file of pairs of sentences does: with a JSON object that has `sentence1`."""
    try:
        with path.open(encoding="utf-8") as lines:
            first = json.loads(next((line for line in lines if line.strip()), ""))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and "sentence1" in first


@dataclass(frozen=True, slots=True)
class FileProbe:
    """A probe, of what and with which model; `pairs` says whether it judged pairs of sentences or named senses."""

    source: str
    model: str
    pairs: bool
    probe: Probe

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value."""
        head = {"source": self.source, "model": self.model, "pairs": self.pairs}
        figures: dict[str, Any] = json_value(self.probe)
        return {**head, **figures, "standard_error": self.probe.standard_error}


def probe_file(
    source: str,
    train: Path | None = None,
    *,
    progress: Progress,
    model: str = "",
    sample: int | None = None,
) -> FileProbe:
    """Probe a file of pairs of sentences, or a collection whose documents are labelled with a word and its sense.

    Parameters
    ----------
    source
        The file, or a collection's path or name.
    train
        Pairs that the probe learns from; without them it is cross-validated.
    progress
        Told of each text.
    model
        A folder or hub id; the built-in model where there is none.
    sample
        Most training pairs used, drawn at random with a fixed seed.

    Raises
    ------
    DiagnosisError
        If there are too few labels to learn from, or training pairs beside a collection.
    """
    reader = open_reader(model)
    if holds_pairs(Path(source)):
        pairs, learned = read_pairs(source), read_pairs(train) if train else []
        if sample is not None and sample < len(learned):
            progress.note(f"the probe learns from {sample:,} of {len(learned):,} training pairs")
            chosen = np.sort(np.random.default_rng(0).choice(len(learned), sample, replace=False))
            learned = [learned[row] for row in chosen.tolist()]
        return FileProbe(source, reader.name, True, probe_pair_file(pairs, learned, reader, progress))
    if train is not None:
        message = f"--train goes with a file of pairs, and {source} is none; leave it out: the probe is cross-validated"
        raise DiagnosisError(message)
    return FileProbe(source, reader.name, False, probe_collection(open_collection(source), reader, progress))


def probe_collection(collection: Collection, reader: StateReader, progress: Progress) -> Probe:
    """Probe the senses that a collection's documents are labelled with.

    Raises
    ------
    DiagnosisError
        If there are too few labelled occurrences to learn from.
    """
    found = labelled_words(collection)
    rows = found.occurrences
    states = _states([row.place for row in rows], reader, progress)
    progress.start("fitting probes", None, "layers")
    try:
        probe = probe_senses(states, [row.word for row in rows], [row.sense for row in rows])
    finally:
        progress.finish()
    if not found.left_out:
        return probe
    note = f"documents that do not hold the word they are labelled with, left out: {found.left_out}"
    return replace(probe, notes=(*probe.notes, note))


def probe_pair_file(
    pairs: Sequence[WordPairInContext], train: Sequence[WordPairInContext], reader: StateReader, progress: Progress
) -> Probe:
    """Probe pairs of sentences; without pairs to train on, by cross-validation over words.

    Raises
    ------
    DiagnosisError
        If there are too few pairs to learn from.
    """
    asked = _pair_states(pairs, reader, progress)
    learned = _pair_states(train, reader, progress) if train else None
    progress.start("fitting probes", None, "layers")
    try:
        return probe_pairs(asked, [pair.word for pair in pairs], train=learned)
    finally:
        progress.finish()


def _pair_states(pairs: Sequence[WordPairInContext], reader: StateReader, progress: Progress) -> PairStates:
    places = list(dict.fromkeys(place for pair in pairs for place in (pair.first, pair.second)))
    row_of = {place: row for row, place in enumerate(places)}
    states = _states(places, reader, progress)
    first, second = [row_of[pair.first] for pair in pairs], [row_of[pair.second] for pair in pairs]
    return PairStates(states[:, first], states[:, second], np.array([pair.same for pair in pairs], dtype=np.int64))


def _states(places: Sequence[Place], reader: StateReader, progress: Progress) -> Floats:
    """Return the (1 + L, n, d) states of words in their texts."""
    out = np.empty((1 + reader.layers, len(places), reader.dimension), dtype=np.float32)
    order = sorted(range(len(places)), key=lambda row: len(places[row].text), reverse=True)
    progress.start("reading words in context", len(places), "texts")
    try:
        for start in range(0, len(order), _BLOCK):
            rows = order[start : start + _BLOCK]
            out[:, rows] = reader.word_states([window(places[row], reader)[0] for row in rows])
            progress.advance(len(rows))
    finally:
        progress.finish()
    return out
