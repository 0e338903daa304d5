"""The senses of a word in an indexed corpus, and which of its words depend on their contexts most."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from corpora.progress import Progress
from indexer.contextual.states import StateReader
from indexer.opening import OpenIndex, sample_rows
from indexer.spec import Family
from indexer.static.word_vectors import load_word_vectors
from search.diagnostics.context_dependence import ContextDependence, context_dependence
from search.diagnostics.corpus_senses import CorpusSenses, corpus_senses
from search.diagnostics.word_senses import open_reader
from search.diagnostics.words import WORD
from search.errors import DiagnosisError

#: Texts read for the ranking of words unless told otherwise: a forward pass each.
SAMPLE = 300
#: So many of the commonest words of general English are everyday words.
EVERYDAY = 1000
#: Occurrences that a ranked word should have; fewer where the texts are too few for that.
_LEAST = (10, 5, 3)
_ENOUGH_WORDS = 40


@dataclass(frozen=True, slots=True)
class IndexSenses:
    """What a model sees in an index's texts.

    Attributes
    ----------
    model
        The model's name.
    senses
        The word's occurrences in groups; None where no word was asked for.
    dependence
        The words that depend on context most and least; None where no word occurs often enough.
    place
        Share of the ranked words that depend on their contexts more than the word asked for; None without one, or
        where it was read less than twice.
    """

    model: str
    senses: CorpusSenses | None
    dependence: ContextDependence | None
    place: float | None


def index_senses(
    index: OpenIndex, word: str = "", *, progress: Progress, model: str = "", sample: int = SAMPLE, seed: int = 0
) -> IndexSenses:
    """Group a word's occurrences in an index, where a word is given, and rank the words by context dependence.

    Parameters
    ----------
    index
        The opened index; its passages are the texts.
    word
        The word, or "".
    progress
        Told of each text.
    model
        A folder or hub id; the model that the index was built with where there is none, else the built-in one.
    sample
        Most texts read for the ranking, drawn at random.
    seed
        Of the draws.

    Raises
    ------
    DiagnosisError
        If the word is in no text, or, without one, no word occurs twice.
    """
    reader = open_reader(model or _own_model(index))
    senses = corpus_senses(word, index.documents.iter_texts(), reader, seed=seed, progress=progress) if word else None
    rows = sample_rows(index.documents.texts, sample, np.random.default_rng(seed))
    texts = list(index.documents.iter_texts(rows))
    try:
        dependence = _ranked(texts, reader, seed, progress)
    except DiagnosisError as error:
        if senses is None:
            raise
        progress.note(str(error))
        dependence = None
    place = None
    if dependence is not None and senses is not None and senses.mean_cosine is not None:
        place = dependence.place(senses.mean_cosine - dependence.anisotropy)
    return IndexSenses(reader.name, senses, dependence, place)


def _own_model(index: OpenIndex) -> str:
    """Return the model of the index's first contextual retriever, "" being the built-in one."""
    records = index.manifest.retrievers
    return next((record.options.get("model", "") for record in records if record.family is Family.CONTEXTUAL), "")


def _ranked(texts: list[str], reader: StateReader, seed: int, progress: Progress) -> ContextDependence:
    counts = Counter(word.lower() for text in texts for word in WORD.findall(text) if word.isalpha())
    fits = (least for least in _LEAST if sum(count >= least for count in counts.values()) >= _ENOUGH_WORDS)
    # GloVe's table is in order of frequency in general English.
    everyday = frozenset(load_word_vectors("glove", limit=EVERYDAY).words)
    return context_dependence(texts, reader, least=next(fits, 2), everyday=everyday, seed=seed, progress=progress)
