"""What a new generation may take over from the one before: encoders, whitenings, how texts were cut.

Statistics of the corpus (idf, whitening, a fitted table) stay frozen across updates: only then do unchanged texts keep
their vectors and scores stay comparable. They grow stale as texts are added that they have not seen. The bound is
`DRIFT`: idf = ln(1 + n / df) moves by less than ln(1.2) = 0.18 for a word of the frozen corpus while a fifth of
new texts come in, less than the step from one document frequency to the next but for the rarest words; past it a build
says so, and `refit` makes the statistics anew from vectors that exist already.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from corpora.document import Document, Passage
from corpora.passages import Window
from indexer.errors import IndexerError
from indexer.layout import GenerationLayout, IndexLayout
from indexer.manifest import Manifest, RetrieverRecord, file_digest, load_checks, load_json
from indexer.publication import current_generation
from indexer.spec import RetrieverSpec
from indexer.stores.documents import DocumentStore
from indexer.stores.vector import VectorStore

#: New texts, as a share of the texts that statistics were made from, beyond which they are called stale.
DRIFT = 0.2
#: Options that change what is done with an encoder's vectors, not the encoder.
_AFTER_ENCODING = frozenset({"whitening", "factory"})

#: Documents -> the passages of those that were cut before, by id.
KnownCuts = Callable[[Sequence[Document]], Mapping[str, list[Passage]]]


@dataclass(frozen=True, slots=True)
class Prior:
    """The generation before; what its checksums do not vouch for, or is of another format, is not used."""

    generation: GenerationLayout
    manifest: Manifest
    checks: Mapping[str, Any]
    _vouched: dict[str, bool] = field(default_factory=dict)
    _stores: list[DocumentStore] = field(default_factory=list)

    @classmethod
    def find(cls, layout: IndexLayout) -> "Prior | None":
        """Return the live generation of an index, None where there is none that can be read."""
        try:
            generation = current_generation(layout)
            return cls(generation, Manifest.load(generation.manifest), load_checks(generation.checks))
        except IndexerError:
            return None

    def close(self) -> None:
        """Close what was opened of it."""
        while self._stores:
            self._stores.pop().close()

    def is_whole(self, part: str) -> bool:
        """Return whether the files of a part (a path below the generation, or a folder's) are as they were written."""
        if part not in self._vouched:
            self._vouched[part] = self._compare(part)
        return self._vouched[part]

    def _compare(self, part: str) -> bool:
        files = self.checks.get("files")
        if not isinstance(files, Mapping):
            return False
        chosen = [name for name in files if name == part or name.startswith(f"{part}/")]
        present = {path.relative_to(self.generation.root).as_posix() for path in self._files(part)}
        if not chosen or present != set(chosen):
            return False
        return all(file_digest(self.generation.root / name) == files[name].get("sha256") for name in chosen)

    def _files(self, part: str) -> list[Path]:
        root = self.generation.root / part
        return [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else [root]

    def open_documents(self) -> DocumentStore | None:
        """Return the documents, for the caller to close; None where they are damaged or of another format."""
        if not self.is_whole(self.generation.documents.name):
            return None
        try:
            return DocumentStore(self.generation.documents)
        except IndexerError:
            return None

    def encoder_folder(self, spec: RetrieverSpec) -> tuple[Path, RetrieverRecord] | None:
        """Return the folder of the encoder that the same notation made, None where there is none or it is damaged."""
        for record in self.manifest.retrievers:
            if record.has_vectors and _encoding(record.spec) == _encoding(spec):
                whole = self.is_whole(f"{record.name}/encoder")
                return (self.generation.retriever(record.name).encoder, record) if whole else None
        return None

    def whitening_file(self, spec: RetrieverSpec, encoder: str) -> Path | None:
        """Return the file of the whitening that the same notation made for the same encoder."""
        record = self.manifest.retriever(spec.name)
        if record is None or not record.whitening or record.encoder != encoder:
            return None
        if record.spec.get("whitening") != spec.get("whitening") or not self.is_whole(f"{spec.name}/whitening.npz"):
            return None
        return self.generation.retriever(spec.name).whitening

    def vectors(self, spec: RetrieverSpec, encoder: str, whitening: str) -> VectorStore | None:
        """Return a retriever's vectors where they are of this encoder and whitening and kept as they were made."""
        record = self.manifest.retriever(spec.name)
        path = self.generation.retriever(spec.name).vectors
        if record is None or (record.encoder, record.whitening) != (encoder, whitening) or record.factory != "Flat":
            return None
        if not self.is_whole(f"{spec.name}/{path.name}"):
            return None
        try:
            return VectorStore.open(path)
        except IndexerError:
            return None

    def cost(self, name: str) -> Mapping[str, Any]:
        """Return what building one retriever took, by the names of `Cost`; nothing where that is not known."""
        try:
            found = load_json(self.generation.cost).get(name)
        except IndexerError:
            return {}
        return found if isinstance(found, Mapping) else {}

    def statistics(self, name: str) -> tuple[int, int]:
        """Return of how many texts a retriever's statistics were made, and how many have been added since."""
        found = self.checks.get("retrievers", {}).get(name, {}).get("statistics", {})
        return int(found.get("texts", self.manifest.texts)), int(found.get("added", 0))

    def known_cuts(self, window: Window) -> KnownCuts | None:
        """Return how to look up the passages of documents that were cut alike before, None where none were."""
        if dict(self.manifest.window) != asdict(window):
            return None
        store = self.open_documents()
        if store is None:
            return None
        self._stores.append(store)

        def known(documents: Sequence[Document]) -> Mapping[str, list[Passage]]:
            texts = {document.doc_id: (document.title, document.text) for document in documents}
            return {
                passages[0].doc_id: passages
                for title, text, passages in store.iter_cuts(list(texts))
                if texts[passages[0].doc_id] == (title, text)
            }

        return known


def _encoding(spec: RetrieverSpec) -> tuple[str, tuple[tuple[str, str], ...]]:
    options = {key: value for key, value in spec.options.items() if key not in _AFTER_ENCODING}
    return spec.family, tuple(sorted(options.items()))
