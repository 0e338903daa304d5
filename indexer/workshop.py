"""What the retrievers of one build share: models, encoded texts, word counts, background texts.

The contextual encoders and the vectors they have computed are kept in the index folder beside the generations,
by what decides them, so that the next build of this index finds them.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from corpora.builtin.lee import open_lee
from corpora.collection import Collection
from corpora.passages import Window
from corpora.progress import Progress
from indexer.approximation import SAMPLE, cut_fragments
from indexer.cost import Cost, CostMeter
from indexer.encoded import EncodedTexts, encode_missing, iter_blocks, keep_encoded
from indexer.encoder import Encoder
from indexer.encoder_making import MODEL_OPTIONS, identify, make_encoder, transformer_spec
from indexer.encoders import open_encoder
from indexer.errors import IndexerError
from indexer.housekeeping import clear_unused, drop_gone
from indexer.layout import write_json
from indexer.prior import KnownCuts, Prior
from indexer.spec import Family, RetrieverSpec
from indexer.staging import background_texts
from indexer.static.weights import WordStatistics, count_words
from indexer.stores.documents import DocumentStore, text_digest
from indexer.vectors import Vectors
from indexer.whitening_strength import GeneralSpace, general_texts

if TYPE_CHECKING:
    from indexer.contextual.tokenization import PieceTokenizer

_CALIBRATION_TEXTS = 300
_BLOCK = 8192
_SEED = 20240229
#: Beside what an encoder's making found: how long it took.
_SECONDS = "making_seconds"


@dataclass(frozen=True, slots=True)
class Made:
    """A contextual encoder, where it lies on disk, the model it came from, and what its gate found.

    `reused_seconds` is what an earlier build took to make it, 0 where this one did.
    """

    encoder: Encoder
    folder: Path
    model: str
    findings: dict[str, Any]
    reused_seconds: float = 0.0


class Work(StrEnum):
    """What an encoder's cost is made of: making it, encoding texts, encoding words alone."""

    MAKING = "making"
    TEXTS = "texts"
    WORDS = "words"


def _entry(made: Made, work: Work) -> str:
    return f"{made.encoder.fingerprint} {work}"


class Workshop:
    """The shared state of one build."""

    def __init__(
        self,
        folder: Path,
        retrievers: Sequence[RetrieverSpec],
        progress: Progress,
        *,
        trust_pickle: bool = False,
    ) -> None:
        """Prepare to build retrievers; nothing is loaded yet."""
        self._folder = folder
        self._retrievers = retrievers
        self.progress = progress
        self.trust_pickle = trust_pickle
        self.notes: list[str] = []
        self.meter = CostMeter()
        self.background: list[str] = []
        self._made: dict[str, Made] = {}
        self._encoded: dict[str, EncodedTexts] = {}
        self._words: dict[str, EncodedTexts] = {}
        self._general: dict[str, GeneralSpace | None] = {}

    def begin(
        self, documents: DocumentStore, collection: Collection, prior: Prior | None = None, *, refit: bool = False
    ) -> None:
        """Take the staged documents, and the generation before unless its statistics are to be made anew."""
        self._prior = prior
        self._refit = refit
        self.documents = documents
        self.digests = documents.digests()
        self.collection = collection
        self.background = background_texts(collection, open_lee().background())

    def note(self, message: str) -> None:
        """Keep a line for the summary, and pass it on; the same line once."""
        if message not in self.notes:
            self.notes.append(message)
            self.progress.note(message)

    # What the passages are cut by

    @cached_property
    def _tokenizer(self) -> "PieceTokenizer":
        from indexer.contextual.tokenization import open_tokenizer

        chosen = _cutting_spec(self._retrievers)
        return open_tokenizer(transformer_spec(chosen, trust_pickle=self.trust_pickle))

    @property
    def piece_budget(self) -> int:
        """Pieces of text that the contextual model reads."""
        return int(self._tokenizer.budget)

    @property
    def special_tokens(self) -> int:
        """Special tokens that the contextual model adds to a text."""
        return int(self._tokenizer.special_tokens)

    def piece_offsets(self, texts: Sequence[str]) -> Sequence[NDArray[np.integer[Any]]]:
        """Return the character offsets of the pieces of each text, without special tokens and uncut."""
        return self._tokenizer.piece_offsets(texts)

    # What the generation before has left

    def known_cuts(self, prior: Prior | None, window: Window) -> KnownCuts | None:
        """Return how texts were cut before, None where they were cut otherwise or by another model's pieces."""
        if prior is None or _cutting_model(spec.spec for spec in prior.manifest.retrievers) != _cutting_model(
            self._retrievers
        ):
            return None
        return prior.known_cuts(window)

    @cached_property
    def earlier_rows(self) -> NDArray[np.int64]:
        """The row that each text has in the generation before, -1 where it is new."""
        earlier = None if self._prior is None else self._prior.open_documents()
        if earlier is None:
            return np.full(self.documents.texts, -1, np.int64)
        held = {digest: row for row, digest in enumerate(earlier.digests().tolist())}
        earlier.close()
        return np.fromiter((held.get(digest, -1) for digest in self.digests.tolist()), np.int64, self.documents.texts)

    @property
    def new_texts(self) -> int:
        """How many texts the generation before does not hold; all where there is none."""
        return int((self.earlier_rows < 0).sum())

    @cached_property
    def frozen(self) -> Prior | None:
        """The generation whose statistics stay; None where there is none, or most of the texts are others."""
        if self._prior is None or self._refit:
            return None
        if 2 * self.new_texts > self.documents.texts:
            self.note("most texts are new to this index: all statistics are made anew")
            return None
        return self._prior

    # Contextual encoders and what they have encoded

    def contextual(self, spec: RetrieverSpec) -> Made:
        """Return the contextual encoder that a retriever asks for, made once and kept."""
        key = _encoder_key(spec)
        if key not in self._made:
            started = time.perf_counter()
            made = self._made[key] = self._make_contextual(spec, key)
            self.meter.add(_entry(made, Work.MAKING), Cost(seconds=time.perf_counter() - started))
        return self._made[key]

    def _make_contextual(self, spec: RetrieverSpec, key: str) -> Made:
        name, weights = identify(spec, trust_pickle=self.trust_pickle)
        folder = self._folder / hashlib.sha256(f"{key} {weights}".encode()).hexdigest()[:16]
        record = folder / "made.json"
        if record.exists():
            try:
                kept = json.loads(record.read_text())
                took = float(kept.pop(_SECONDS, 0.0))
                return Made(open_encoder(folder / "encoder"), folder / "encoder", name, kept, took)
            except (IndexerError, ValueError, TypeError, AttributeError):
                self.note(f"{spec.name}: the encoder kept from an earlier build is damaged; making it anew")
        # What it has encoded stays: it counts if the new one has the same fingerprint.
        shutil.rmtree(folder / "encoder", ignore_errors=True)
        (folder / "encoder").mkdir(parents=True)
        started = time.perf_counter()
        encoder, findings = make_encoder(
            spec,
            folder / "encoder",
            calibration=self._calibration,
            progress=self.progress,
            trust_pickle=self.trust_pickle,
        )
        write_json(record, {**findings, _SECONDS: time.perf_counter() - started})
        return Made(encoder, folder / "encoder", name, findings)

    def _calibration(self) -> list[str]:
        """Return a few hundred of the corpus's own passages, and background texts where there are too few."""
        rows = sample_rows(self.documents.texts, _CALIBRATION_TEXTS)
        texts = [text for text in self.documents.iter_texts(rows) if text.strip()]
        return texts + self.background[: max(0, _CALIBRATION_TEXTS - len(texts))]

    def encoded(self, made: Made, rows: NDArray[np.int64] | None = None) -> EncodedTexts:
        """Return the encoded texts of an encoder, those of the given rows (all where None) among them."""
        fingerprint = made.encoder.fingerprint
        if fingerprint not in self._encoded:
            folder = made.folder.parent / f"texts-{fingerprint[:16]}"
            self._encoded[fingerprint] = EncodedTexts(folder, made.encoder.dimension)
        held = self._encoded[fingerprint]
        wanted = np.arange(self.documents.texts, dtype=np.int64) if rows is None else rows
        with self.meter.measure(_entry(made, Work.TEXTS)):
            encode_missing(held, made.encoder, self.documents, wanted, self.progress, "encoding (contextual)")
        return held

    def encoded_blocks(self, made: Made, rows: NDArray[np.int64] | None = None) -> Iterator[Vectors]:
        """Yield the vectors of the given rows (all where None) in order."""
        held = self.encoded(made, rows)
        return iter_blocks(held, self.digests if rows is None else self.digests[rows])

    def tokenizer_definition(self) -> str:
        """Return the text of the contextual model's `tokenizer.json`."""
        return self._tokenizer.definition()

    def encoded_words(self, made: Made, wanted: Sequence[str] | None = None) -> Vectors:
        """Return the (V, d) vectors of words (the corpus's where None), each encoded alone; kept like the texts."""
        fingerprint = made.encoder.fingerprint
        if fingerprint not in self._words:
            folder = made.folder.parent / f"words-{fingerprint[:16]}"
            self._words[fingerprint] = EncodedTexts(folder, made.encoder.dimension)
        held = self._words[fingerprint]
        words = list(self.word_statistics.words if wanted is None else wanted)
        digests = word_digests(words)
        missing = np.flatnonzero(held.find(digests) < 0)
        self.progress.start("encoding words", len(missing), "words")
        with self.meter.measure(_entry(made, Work.WORDS)):
            for start in range(0, len(missing), _BLOCK):
                part = missing[start : start + _BLOCK]
                keep_encoded(held, made.encoder, digests[part], [words[number] for number in part])
                self.progress.advance(len(part))
        self.progress.finish()
        return held.gather(digests)

    def clear_up(self) -> None:
        """Remove what is kept for later builds and has outgrown its use."""
        used = [made.folder for made in self._made.values()]
        used += [made.folder.parent / f"words-{made.encoder.fingerprint[:16]}" for made in self._made.values()]
        used += [held.folder for held in self._encoded.values()]
        if self._made:
            drop_gone({held.folder: held for held in self._encoded.values()}, self.digests)
        clear_unused(self._folder, used)

    def stable_sample(self, most: int) -> NDArray[np.int64]:
        """Return at most `most` rows, ascending, of the smallest digests: an update changes few of them."""
        first = np.frombuffer(self.digests.tobytes(), ">u8")[::2]
        return np.sort(np.argsort(first, kind="stable")[:most]).astype(np.int64)

    def general_space(self, made: Made) -> GeneralSpace | None:
        """Return what general text looks like in an encoder's space, measured once."""
        key = made.encoder.fingerprint
        if key not in self._general:
            self._general[key] = measure_general(made.encoder, self.background)
        return self._general[key]

    def earlier_cost(self, spec: RetrieverSpec, *works: "Work") -> Cost:
        """Return what kinds of work on the encoder that a retriever asks for have cost before it asks."""
        made = self._made.get(_encoder_key(spec))
        costs = [] if made is None else [self.meter.costs.get(_entry(made, work), Cost()) for work in works]
        return sum(costs, Cost())

    def held(self, made: Made, work: "Work") -> EncodedTexts | None:
        """Return the texts or words that an encoder has encoded, None where this build has not asked for any."""
        return (self._words if work is Work.WORDS else self._encoded).get(made.encoder.fingerprint)

    # Words

    @cached_property
    def word_statistics(self) -> WordStatistics:
        """Counts of the words of all texts."""
        return count_words(self.text_blocks(), progress=self.progress)

    @cached_property
    def fragments(self) -> list[str]:
        """Short runs of words cut from the texts: the queries that an approximate index is tuned on."""
        rng = np.random.default_rng(_SEED)
        return cut_fragments(self.documents.iter_texts(sample_rows(self.documents.texts, SAMPLE)), rng)

    def text_blocks(self, size: int = _BLOCK, *, rows: NDArray[np.int64] | None = None) -> Iterator[list[str]]:
        """Yield the distinct texts of the given rows (all where None) in order of row, in blocks."""
        block: list[str] = []
        for text in self.documents.iter_texts(rows):
            block.append(text)
            if len(block) == size:
                yield block
                block = []
        if block:
            yield block


_TRANSFORMER_FAMILIES = frozenset({Family.CONTEXTUAL, Family.FITTED, Family.DISTILLED})


def _cutting_spec(specs: Iterable[RetrieverSpec]) -> RetrieverSpec:
    """Return the retriever whose model's pieces texts are cut by."""
    default = RetrieverSpec("contextual", Family.CONTEXTUAL)
    return next((spec for spec in specs if spec.family in _TRANSFORMER_FAMILIES), default)


def _cutting_model(specs: Iterable[RetrieverSpec]) -> tuple[str, str]:
    chosen = _cutting_spec(specs)
    return chosen.get("model"), chosen.get("document-prompt")


def _encoder_key(spec: RetrieverSpec) -> str:
    return json.dumps([spec.family is Family.ELMO, *(spec.get(option) for option in MODEL_OPTIONS)])


def measure_general(encoder: Encoder, background: Sequence[str]) -> GeneralSpace | None:
    """Encode general text in both lengths and return what it looks like; None where there is too little."""
    passages, sentences = general_texts(background)
    if not passages or not sentences:
        return None
    return GeneralSpace.measure(encoder.encode(passages), encoder.encode(sentences))


def word_digests(words: Iterable[str]) -> NDArray[np.void]:
    """Return the (V,) digests by which encoded words are known."""
    return np.frombuffer(b"".join(text_digest(word) for word in words), dtype="V16")


def sample_rows(size: int, most: int) -> NDArray[np.int64]:
    """Return at most `most` distinct rows, ascending, the same ones at every build of the same size."""
    if size <= most:
        return np.arange(size, dtype=np.int64)
    return np.sort(np.random.default_rng(_SEED).choice(size, most, replace=False)).astype(np.int64)
