"""The vector store: a FAISS index over unit vectors, searched by inner product. The only importer of faiss."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.errors import DamagedIndexError, FactoryError
from indexer.vectors import Vectors, as_float32


@dataclass(frozen=True, slots=True)
class VectorStore:
    """Rows of unit vectors; row numbers count from 0 in the order they were added."""

    index: "faiss.Index"

    @property
    def size(self) -> int:
        """Number n of rows."""
        return int(self.index.ntotal)

    @property
    def dimension(self) -> int:
        """Dimensions d."""
        return int(self.index.d)

    @classmethod
    def build(
        cls,
        blocks: Iterable[Vectors],
        dimension: int,
        *,
        factory: str = "Flat",
        training: Vectors | None = None,
    ) -> "VectorStore":
        """Build a store from blocks of (b, d) vectors.

        Parameters
        ----------
        factory
            A FAISS index factory string.
        training
            (t, d) vectors for factories that need training.

        Raises
        ------
        FactoryError
            If FAISS cannot make, train or fill such an index.
        """
        try:
            index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
            if not index.is_trained:
                if training is None or not len(training):
                    message = f"--factory {factory} needs vectors to train on, and there are none; use Flat"
                    raise FactoryError(message)
                index.train(as_float32(training))
            for block in blocks:
                if len(block):
                    index.add(as_float32(block))
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[-1]
            count = 0 if training is None else len(training)
            message = f"FAISS cannot build {factory!r} for d={dimension} with {count} training vectors: {reason}; use Flat"
            raise FactoryError(message) from error
        return cls(index)

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.int64] | None = None
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """Return the k best rows of each query.

        Parameters
        ----------
        queries
            (q, d) float32.
        k
            Rows wanted; cut to the number there are.
        allowed
            Rows to choose from; all where None.

        Returns
        -------
        scores, rows
            (q, min(k, n)) each, by descending score; a place that nothing fills has row -1.
        """
        k = min(k, self.size if allowed is None else len(allowed))
        if k <= 0:
            empty = (len(queries), 0)
            return np.zeros(empty, np.float32), np.zeros(empty, np.int64)
        parameters = None
        if allowed is not None:
            parameters = self._parameters(faiss.IDSelectorBatch(np.ascontiguousarray(allowed, np.int64)))
        scores, rows = self.index.search(as_float32(queries), k, params=parameters)
        return scores, rows

    def _parameters(self, selector: "faiss.IDSelector") -> "faiss.SearchParameters":
        index = faiss.downcast_index(self.index)
        if isinstance(index, faiss.IndexIVF):
            return faiss.SearchParametersIVF(sel=selector, nprobe=index.nlist)
        return faiss.SearchParameters(sel=selector)

    def reconstruct(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the stored (r, d) vectors of the given rows (as the index kind keeps them)."""
        return as_float32(self.index.reconstruct_batch(np.ascontiguousarray(rows, np.int64)))

    def save(self, path: Path) -> None:
        """Write the FAISS file."""
        faiss.write_index(self.index, str(path))

    @classmethod
    def open(cls, path: Path, *, memory_map: bool = True) -> "VectorStore":
        """Open a FAISS file.

        Raises
        ------
        DamagedIndexError
            If the file is missing or FAISS cannot read it.
        """
        flags = faiss.IO_FLAG_MMAP_IFC if memory_map else 0
        try:
            return cls(faiss.read_index(str(path), flags))
        except RuntimeError as error:
            state = "is damaged" if path.exists() else "is missing"
            message = f"{path.name} of {path.parent.name} {state}; run: twindex check, then index again"
            raise DamagedIndexError(message) from error
