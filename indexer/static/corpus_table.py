"""From a table of word vectors to the encoder of one corpus: only the words worth keeping, weighted."""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.static.averaging import AveragedEncoder, TermFrequency, averaged
from indexer.static.tokenizer import blocks, spans
from indexer.static.vocabulary import span_hashes
from indexer.static.weights import Weighting, WordStatistics
from indexer.static.word_vectors import WordVectors
from indexer.vectors import Vectors, as_float32

#: Words of the table kept beside the corpus's own, the most frequent first.
FREQUENT_WORDS = 100_000
#: What treebank-style tables (GloVe) hold of contractions: "don't" is `do` and `n't` there.
_ENDINGS = ("n't", "'re", "'ve", "'ll", "'m", "'d")
_VERBS = (
    "do",
    "does",
    "did",
    "is",
    "are",
    "was",
    "were",
    "has",
    "have",
    "had",
    "ca",
    "wo",
    "would",
    "could",
    "should",
)
_SUBJECTS = ("i", "you", "he", "she", "it", "we", "they", "who", "that", "there", "what")
#: Queries use these whether the corpus does or not.
_CONTRACTIONS = (
    *(f"{verb}n't" for verb in _VERBS),
    *(f"{subject}'{ending}" for subject in _SUBJECTS for ending in ("m", "re", "ve", "ll", "d")),
)


def for_corpus(
    vectors: WordVectors,
    statistics: WordStatistics,
    *,
    weighting: Weighting | str = Weighting.IDF,
    term_frequency: TermFrequency | str = TermFrequency.RAW,
    frequent: int = FREQUENT_WORDS,
) -> AveragedEncoder:
    """Make the encoder of a corpus: its own words and the `frequent` first words of the table.

    The table's words are brought into the tokenizer's form; where several rows meet in one form (Bank, bank),
    the one written in that form wins, then the more frequent. Words of the corpus that the table lacks get
    a vector where one can be had: from the table's n-grams, from the halves of a contraction (do + n't), or
    from the word without its accents.
    """
    rows, forms = _forms(vectors.words, statistics, frequent)
    row_of = dict(zip(forms, rows.tolist(), strict=True))
    known = {form: row_of[form] for form in statistics.words if form in row_of}
    words = list(known) + [form for form in row_of if form not in known]
    kept = np.fromiter((row_of[form] for form in words), dtype=np.int64, count=len(words))
    table = as_float32(vectors.matrix[kept])
    wanted = dict.fromkeys([*statistics.words, *_CONTRACTIONS])
    made = _made(vectors, [word for word in wanted if word not in row_of], row_of)
    words += list(made)
    if made:
        table = np.concatenate([table, np.stack(list(made.values()))])
    return averaged(
        words,
        table,
        statistics.weights(words, weighting),
        term_frequency=term_frequency,
        composition=vectors.composition,
        composed_weight=statistics.unseen_weight(weighting),
        name=vectors.name,
    )


def _forms(words: Sequence[str], statistics: WordStatistics, frequent: int) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows worth keeping, in file order, and each one's word in the tokenizer's form."""
    rows: list[NDArray[np.int64]] = []
    hashes: list[NDArray[np.uint64]] = []
    as_written: list[NDArray[np.bool_]] = []
    forms: list[str] = []
    begin = 0
    for block in blocks(words):
        found = spans(block)
        single = np.flatnonzero(np.diff(found.offsets) == 1)
        token = found.offsets[single]
        marks = span_hashes(found)[token]
        wanted = (single + begin < frequent) | (statistics.words.ids_of_hashes(marks) >= 0)
        rows.append(single[wanted] + begin)
        hashes.append(marks[wanted])
        own = [found.word(int(number)) for number in token[wanted]]
        forms += own
        written = (block[number] for number in single[wanted].tolist())
        # "u.s." is how a table writes the form "u.s"
        pairs = zip(written, own, strict=True)
        as_written.append(np.array([w == form or ("." in form and w == form + ".") for w, form in pairs], dtype=bool))
        begin += len(block)
    if not forms:
        return np.empty(0, dtype=np.int64), []
    all_rows = np.concatenate(rows)
    all_hashes = np.concatenate(hashes)
    order = np.lexsort((all_rows, ~np.concatenate(as_written), all_hashes))
    _, first = np.unique(all_hashes[order], return_index=True)
    kept = np.sort(order[first])
    return all_rows[kept], [forms[number] for number in kept.tolist()]


def _made(vectors: WordVectors, missing: Sequence[str], row_of: dict[str, int]) -> dict[str, Vectors]:
    """Return (d,) vectors for words of the corpus that the table lacks, where they can be made."""
    written = {word: row for row, word in enumerate(vectors.words[:10_000]) if word in _ENDINGS}
    made: dict[str, Vectors] = {}
    for word in missing:
        vector: Vectors | None = None
        if vectors.composition is not None:
            vector = vectors.composition.vector(word)
        elif ending := next((e for e in _ENDINGS if e in written and word.endswith(e)), None):
            base = row_of.get(word.removesuffix(ending))
            if base is not None:
                vector = (vectors.matrix[base] + vectors.matrix[written[ending]]) / 2
        elif not word.isascii():
            plain = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
            row = row_of.get(plain)
            vector = None if row is None else vectors.matrix[row]
        if vector is not None:
            made[word] = as_float32(vector[None])[0]
    return made
