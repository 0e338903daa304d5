"""An opened index: its stores, encoders and whitenings, each read when it is first needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from indexer import judgement_files
from indexer.arrays import UNREADABLE_ARRAYS, read_array
from indexer.cosine_background import CosineBackground
from indexer.encoder import Encoder
from indexer.encoders import open_encoder
from indexer.errors import DamagedIndexError, IndexerError, PortabilityError, SpecError
from indexer.judgement_files import Judgements
from indexer.layout import GenerationLayout, IndexLayout, RetrieverLayout
from indexer.manifest import Manifest, RetrieverRecord, load_checks, load_json, verify_files
from indexer.publication import current_generation
from indexer.stores.documents import DocumentStore
from indexer.stores.vector import VectorStore
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening

if TYPE_CHECKING:
    from indexer.stores.lexical import LexicalStore

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class VectorParts:
    """What answers a dense query: an encoder, perhaps a whitening, and the vectors.

    `unknown` are the rows of texts of which the encoder knows nothing: vectors of zeros, which answer nothing.
    """

    encoder: Encoder
    whitening: Whitening | None
    store: VectorStore
    unknown: frozenset[int] = frozenset()

    def project(self, vectors: Vectors) -> Vectors:
        """Take encoded (n, d) vectors into the space that the store is searched in."""
        return vectors if self.whitening is None else normalize(self.whitening.transform(vectors))


@dataclass
class OpenIndex:
    """One generation of an index, open for reading. It never changes, so it can be shared between threads."""

    root: Path
    generation: GenerationLayout
    manifest: Manifest
    _encoders: dict[str, Encoder] = field(default_factory=dict)
    _parts: dict[str, VectorParts] = field(default_factory=dict)

    @cached_property
    def documents(self) -> DocumentStore:
        """The documents and passages."""
        self._verify(self.generation.documents.name)
        return DocumentStore(self.generation.documents)

    @cached_property
    def checks(self) -> Mapping[str, Any]:
        """What the build found."""
        return load_checks(self.generation.checks)

    def search_recall(self, name: str) -> float | None:
        """Return recall@10 of a vector retriever's search against exact search, as its build measured it.

        1 where the search is exact; None where there is no vector search, or nobody measured an approximate one.
        """
        if not self.record(name).has_vectors:
            return None
        if not self.approximation(name):
            return 1.0
        found = self._findings(name).get("approximation", {}).get("recall@10")
        return None if found is None else float(found)

    def cosine_background(self, name: str) -> CosineBackground | None:
        """Return how large the cosines of random pairs of a vector retriever's texts are.

        None where there are no vectors, or they are of an earlier version's index.
        """
        return CosineBackground.from_json(self._findings(name).get("random_cosines"))

    def _findings(self, name: str) -> Mapping[str, Any]:
        found = self.checks.get("retrievers", {}).get(name, {})
        return found if isinstance(found, Mapping) else {}

    def approximation(self, name: str) -> str:
        """Return the FAISS factory string of a retriever whose vector search is approximate, "" for all others."""
        factory = self.record(name).factory
        return "" if factory == "Flat" else factory

    @cached_property
    def judgements(self) -> Judgements:
        """The queries and judgements of the collection."""
        self._verify(self.generation.judgements.name)
        return judgement_files.load(self.generation.judgements)

    def _verify(self, part: str) -> None:
        verify_files(self.generation, self.checks, part)

    @cached_property
    def cost(self) -> Mapping[str, Any]:
        """What the build took."""
        return load_json(self.generation.cost)

    def record(self, name: str) -> RetrieverRecord:
        """Return a retriever's record.

        Raises
        ------
        SpecError
            If the index holds no retriever of that name.
        """
        record = self.manifest.retriever(name)
        if record is None:
            held = ", ".join(record.name for record in self.manifest.retrievers)
            message = f"this index holds no retriever {name!r}; it holds: {held}"
            raise SpecError(message)
        return record

    def lexical(self, name: str) -> "LexicalStore":
        """Open the lexical store with the parameters of one retriever."""
        from indexer.stores.lexical import LexicalStore

        spec = self.record(name).spec
        parameters = {key: float(spec.get(key)) for key in ("k1", "b") if spec.get(key)}
        self._verify(self.generation.lexical.name)
        store = LexicalStore.open(self.generation.lexical, **parameters)
        if store.size != self.manifest.documents or store.largest >= self.manifest.documents:
            message = (
                f"the lexical index holds {store.size} documents, the manifest says {self.manifest.documents};"
                " run: twindex check, then index again"
            )
            raise DamagedIndexError(message)
        return store

    def vectors(self, name: str) -> VectorParts:
        """Open the vector side of one retriever; encoders that several of them share are opened once.

        Raises
        ------
        PortabilityError
            If the encoder or whitening in the folder is not the one the vectors were made with.
        """
        if name not in self._parts:
            self._parts[name] = self._open_vectors(self.record(name))
        return self._parts[name]

    def _open_vectors(self, record: RetrieverRecord) -> VectorParts:
        layout = self.generation.retriever(record.name)
        for path in (layout.vectors, layout.whitening, layout.unknown):
            self._verify(path.relative_to(self.generation.root).as_posix())
        encoder = self._encoders.get(record.encoder)
        if encoder is None:
            encoder = open_encoder(layout.encoder)
            if encoder.fingerprint != record.encoder:
                message = (
                    f"the encoder in {record.name}/encoder is not the one that made its vectors"
                    f" (fingerprint {encoder.fingerprint[:12]}, expected {record.encoder[:12]}): vectors of one model,"
                    " layer or precision mean nothing in another's space, even at the same dimension; index again"
                )
                raise PortabilityError(message)
            self._encoders[record.encoder] = encoder
        whitening = Whitening.load(layout.whitening) if record.whitening else None
        if whitening is not None and whitening.fingerprint != record.whitening:
            message = f"the whitening of {record.name} is not the one that made its vectors; index again"
            raise PortabilityError(message)
        store = VectorStore.open(layout.vectors)
        if store.dimension != record.dimension or store.size != self.manifest.texts:
            message = (
                f"{record.name}/vectors.faiss holds {store.size} vectors of {store.dimension} dimensions, the manifest"
                f" says {self.manifest.texts} of {record.dimension}; run: twindex check, then index again"
            )
            raise PortabilityError(message)
        return VectorParts(encoder, whitening, store, _unknown_rows(layout))

    def close(self) -> None:
        """Close the database, if it was opened."""
        if "documents" in self.__dict__:
            self.documents.close()


def _unknown_rows(layout: RetrieverLayout) -> frozenset[int]:
    if not layout.unknown.exists():
        return frozenset()
    try:
        return frozenset(read_array(layout.unknown).astype(np.int64, casting="safe").tolist())
    except UNREADABLE_ARRAYS as error:
        message = f"{layout.unknown.name} of {layout.root.name} is damaged; run: twindex check, then index again"
        raise DamagedIndexError(message) from error


def open_index(path: Path | str) -> OpenIndex:
    """Open the live generation of an index folder.

    Raises
    ------
    NotAnIndexError
        If the folder holds no published index.
    DamagedIndexError, FormatVersionError
        If it cannot be read.
    """
    root = Path(path)
    generation = current_generation(IndexLayout(root))
    return OpenIndex(root, generation, Manifest.load(generation.manifest))


def reading_live(path: Path | str, read: Callable[[], _T], *, tries: int = 10) -> _T:
    """Do what reads an index; do it again where the generation it read was replaced and removed under its hands.

    Raises
    ------
    IndexerError
        What reading raised, where nobody has published in the meantime.
    """
    layout = IndexLayout(Path(path))
    for _ in range(tries):
        before = layout.current.read_bytes() if layout.current.is_file() else b""
        try:
            return read()
        except (IndexerError, OSError):
            after = layout.current.read_bytes() if layout.current.is_file() else b""
            if after == before:
                raise
    return read()


def sample_rows(size: int, most: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return at most `most` distinct row numbers below `size`, ascending."""
    if size <= most:
        return np.arange(size, dtype=np.int64)
    return np.sort(rng.choice(size, most, replace=False)).astype(np.int64)
