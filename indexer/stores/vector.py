"""The vector store: a FAISS index over unit vectors, searched by inner product. The only importer of faiss."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray

from indexer.errors import REBUILD, DamagedIndexError, FactoryError, TooFewVectorsError
from indexer.vectors import Vectors, as_float32

#: Candidates that a re-ranking kind re-ranks unless it is tuned, for a query of any k: the first 10 stay those of 100.
_CANDIDATES = 2000
_MOST_CANDIDATES = 32_000
#: FAISS keeps candidates as a multiple of k; the file's multiple is one of this k.
_UNIT = 10
_CHUNK = 65_536
_CORES: int = faiss.omp_get_max_threads()
#: Multiply-adds up to which a search runs on one core.
_ONE_CORE_WORK = 10_000_000
#: Header of a FAISS file -> how it is mapped into memory; kinds that FAISS cannot map are read.
_MAPPED = {
    b"IxFI": faiss.IO_FLAG_MMAP_IFC,
    b"IxRF": faiss.IO_FLAG_MMAP_IFC,
    b"IwFl": faiss.IO_FLAG_MMAP,
    b"IwSq": faiss.IO_FLAG_MMAP,
    b"IwPQ": faiss.IO_FLAG_MMAP,
}
#: Dimensions that a factory string is tried with before anything is encoded: with one of them it must parse.
_COMMON_DIMENSIONS = (384, 300, 50, 100, 768, 1024, 64, 25, 4)


def check_factory(factory: str) -> None:
    """Refuse a factory string that FAISS can parse for no usual dimension.

    Raises
    ------
    FactoryError
        With what FAISS says of it.
    """
    reason = ""
    for dimension in _COMMON_DIMENSIONS:
        try:
            index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            reason = reason or _reason(error)
        else:
            ivf = faiss.try_extract_index_ivf(index)
            if ivf is None or ivf.nlist > 0:
                return
            reason = "no lists"
            break
    message = f"FAISS cannot make an index {factory!r}: {reason}; for instance: Flat, IVF256,SQfp16 or HNSW32"
    raise FactoryError(message)


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

    @property
    def is_exact(self) -> bool:
        """Whether every search compares with every vector as it was added."""
        return isinstance(faiss.downcast_index(self.index), faiss.IndexFlat)

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
        TooFewVectorsError
            If FAISS cannot train such an index on so few vectors.
        FactoryError
            If FAISS cannot make or fill such an index.
        """
        count = 0 if training is None else len(training)
        faiss.omp_set_num_threads(_CORES)
        try:
            index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            message = f"FAISS cannot build {factory!r} for {dimension} dimensions: {_reason(error)}; use Flat"
            raise FactoryError(message) from error
        store = cls(index)
        if (refining := store._refining()) is not None:
            refining.k_factor = _CANDIDATES / _UNIT
        if not index.is_trained:
            store._train(factory, training if training is not None else np.zeros((0, dimension), np.float32))
        try:
            for block in blocks:
                if len(block):
                    index.add(as_float32(block))
        except RuntimeError as error:
            message = f"FAISS cannot fill {factory!r} (trained on {count} vectors): {_reason(error)}; use Flat"
            raise FactoryError(message) from error
        return store

    def _train(self, factory: str, training: Vectors) -> None:
        ivf = faiss.try_extract_index_ivf(self.index)
        lists = 1 if ivf is None else int(ivf.nlist)
        try:
            if len(training) < lists:
                message = f"{factory} makes {lists} lists, and there are {len(training)} vectors to train on"
                raise TooFewVectorsError(message)
            # FAISS would print a warning below 39 vectors a centroid; recall is measured afterwards anyway.
            if ivf is not None:
                ivf.cp.min_points_per_centroid = 1
            for codes in self._product_codes():
                codes.cp.min_points_per_centroid = 1
            self.index.train(as_float32(training))
        except RuntimeError as error:
            message = f"FAISS cannot train {factory!r} on {len(training)} vectors: {_reason(error)}"
            raise TooFewVectorsError(message) from error

    @property
    def gives_back(self) -> bool:
        """Whether `reconstruct` can return what is stored."""
        return not self._cannot_give_back()

    @property
    def keeps_lengths(self) -> bool:
        """Whether stored vectors have the length they came with: plain floats, of 32 or 16 bits."""
        refining = self._refining()
        kind = faiss.downcast_index(self.index if refining is None else refining.refine_index)
        if isinstance(kind, faiss.IndexIVFScalarQuantizer | faiss.IndexScalarQuantizer):
            return bool(kind.sq.qtype == faiss.ScalarQuantizer.QT_fp16)
        return isinstance(kind, faiss.IndexFlat | faiss.IndexIVFFlat)

    # Search effort: how much of itself an approximate kind looks at

    @property
    def effort(self) -> int:
        """Lists probed (IVF), candidates kept (HNSW) or re-ranked (Refine) by a search; 0 where there is no choice."""
        if (ivf := self._ivf()) is not None:
            return int(ivf.nprobe)
        if (refining := self._refining()) is not None:
            return round(float(refining.k_factor) * _UNIT)
        graph = self._graph()
        return 0 if graph is None else int(graph.hnsw.efSearch)

    @property
    def most_effort(self) -> int:
        """The effort beyond which nothing is gained."""
        if (ivf := self._ivf()) is not None:
            return int(ivf.nlist)
        if self._refining() is not None:
            return min(self.size, _MOST_CANDIDATES)
        return 0 if self._graph() is None else min(self.size, 4096)

    def least_effort(self, rows: int) -> int:
        """Return the effort with which a search looks at so many rows closely, in the mean."""
        if (ivf := self._ivf()) is not None:
            return min(self.most_effort, -(-rows * int(ivf.nlist) // max(1, self.size)))
        return min(self.most_effort, rows if self._refining() is not None else 1)

    def set_effort(self, effort: int) -> None:
        """Set the effort of searches; FAISS keeps it in the file."""
        if (ivf := self._ivf()) is not None:
            ivf.nprobe = effort
        elif (refining := self._refining()) is not None:
            refining.k_factor = effort / _UNIT
        elif (graph := self._graph()) is not None:
            graph.hnsw.efSearch = effort

    def _refining(self) -> "faiss.IndexRefine | None":
        index = faiss.downcast_index(self.index)
        return index if isinstance(index, faiss.IndexRefine) else None

    def _ivf(self) -> "faiss.IndexIVF | None":
        found = faiss.try_extract_index_ivf(self.index)
        return None if found is None else faiss.downcast_index(found)

    def _graph(self) -> "faiss.IndexHNSW | None":
        index = faiss.downcast_index(self.index)
        return index if isinstance(index, faiss.IndexHNSW) else None

    def _product_codes(self) -> Iterator["faiss.ProductQuantizer"]:
        """Yield the product quantisers of an index and of whatever it is wrapped around."""
        index = faiss.downcast_index(self.index)
        while index is not None:
            if hasattr(index, "pq"):
                yield index.pq
            inner = getattr(index, "base_index", None) or getattr(index, "index", None)
            index = None if inner is None else faiss.downcast_index(inner)

    # Searching

    def search(
        self, queries: Vectors, k: int, *, allowed: NDArray[np.int64] | None = None
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """Return the k best rows of each query; among allowed rows the search is exhaustive for every kind.

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
        asked = as_float32(queries)
        # A search of a millisecond ends sooner on one core than after waiting for all of them to join in.
        small = len(asked) * self.size * self.dimension < _ONE_CORE_WORK
        faiss.omp_set_num_threads(1 if small else _CORES)
        if allowed is not None:
            return self._search_allowed(asked, k, np.ascontiguousarray(allowed, np.int64))
        if self.is_exact:
            found: tuple[Vectors, NDArray[np.int64]] = self.index.search(asked, k)
            return found
        effort = self.effort
        scores, rows = self.index.search(asked, k, params=_parameters(self.index, k, effort))
        while effort < self.most_effort and (short := np.flatnonzero(rows[:, -1] < 0)).size:
            # The lists probed hold fewer than k rows: look into more of them, for those queries alone.
            effort = min(self.most_effort, 2 * effort)
            parameters = _parameters(self.index, k, effort)
            scores[short], rows[short] = self.index.search(asked[short], k, params=parameters)
        return scores, rows

    def _search_allowed(
        self, queries: Vectors, k: int, allowed: NDArray[np.int64]
    ) -> tuple[Vectors, NDArray[np.int64]]:
        index = faiss.downcast_index(self.index)
        if isinstance(index, faiss.IndexFlat) or type(index) in _FILTERING_IVF:
            chosen = np.zeros(self.size, np.bool_)
            chosen[allowed] = True
            bits = np.packbits(chosen, bitorder="little")
            selector = faiss.IDSelectorBitmap(self.size, faiss.swig_ptr(bits))
            flat = isinstance(index, faiss.IndexFlat)
            parameters = (
                faiss.SearchParameters(sel=selector)
                if flat
                else faiss.SearchParametersIVF(sel=selector, nprobe=index.nlist)
            )
            found: tuple[Vectors, NDArray[np.int64]] = self.index.search(queries, k, params=parameters)
            return found
        if self._cannot_give_back():
            return self._search_everything(queries, k, allowed)
        best = np.zeros((len(queries), 0), np.float32)
        places = np.zeros((len(queries), 0), np.int64)
        for start in range(0, len(allowed), _CHUNK):
            part = allowed[start : start + _CHUNK]
            best = np.concatenate([best, queries @ self.reconstruct(part).T], axis=1)
            places = np.concatenate([places, np.broadcast_to(part, (len(queries), len(part)))], axis=1)
            order = np.argsort(-best, axis=1, kind="stable")[:, :k]
            best, places = np.take_along_axis(best, order, 1), np.take_along_axis(places, order, 1)
        return best, places

    def _search_everything(
        self, queries: Vectors, k: int, allowed: NDArray[np.int64]
    ) -> tuple[Vectors, NDArray[np.int64]]:
        parameters = _parameters(self.index, self.size, self.most_effort)
        scores, rows = self.index.search(queries, self.size, params=parameters)
        first = np.argsort(~np.isin(rows, allowed), axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, first, 1), np.take_along_axis(rows, first, 1)

    def _cannot_give_back(self) -> bool:
        # FAISS 1.15 crashes when asked for vectors of fast-scan inverted lists.
        outer = faiss.downcast_index(self.index)
        return not isinstance(outer, faiss.IndexRefine) and isinstance(self._ivf(), faiss.IndexIVFFastScan)

    def reconstruct(self, rows: NDArray[np.int64]) -> Vectors:
        """Return the stored (r, d) vectors of the given rows, as exactly as the kind keeps them.

        Raises
        ------
        FactoryError
            If the kind keeps nothing that a vector could be had from.
        """
        kind = faiss.downcast_index(self.index)
        ivf = None if isinstance(kind, faiss.IndexRefine) else self._ivf()
        if self._cannot_give_back():
            message = "a fast-scan index does not give its vectors back; index again with --factory Flat"
            raise FactoryError(message)
        try:
            if ivf is not None and ivf.direct_map.no():
                ivf.make_direct_map()  # row -> list; 8 bytes a row, made when first asked for
            return as_float32(self.index.reconstruct_batch(np.ascontiguousarray(rows, np.int64)))
        except RuntimeError as error:
            name = type(kind).__name__
            message = f"{name} cannot give its vectors back ({_reason(error)}); index again with --factory Flat"
            raise FactoryError(message) from error

    # Files

    def save(self, path: Path) -> None:
        """Write the FAISS file."""
        try:
            faiss.write_index(self.index, str(path))
        except RuntimeError as error:
            message = f"{path} cannot be written ({_reason(error)})"
            raise OSError(message) from error

    @classmethod
    def open(cls, path: Path, *, memory_map: bool = True) -> "VectorStore":
        """Open a FAISS file; kinds that FAISS can map into memory are mapped, others read.

        Raises
        ------
        DamagedIndexError
            If the file is missing or FAISS cannot read it.
        """
        try:
            with path.open("rb") as handle:
                flags = _MAPPED.get(handle.read(4), 0) if memory_map else 0
            index = faiss.read_index(str(path), flags)
        except (RuntimeError, OSError, MemoryError) as error:
            if "not recognized" in str(error) and _KIND.fullmatch(_first_bytes(path)):
                what = f"{path.name} of {path.parent.name} is of no kind that this FAISS knows ({_reason(error)})"
                message = f"{what}: it is damaged, or another FAISS wrote it; build it anew: {REBUILD}"
                raise DamagedIndexError(message) from error
            state = "is damaged" if path.exists() else "is missing"
            message = f"{path.name} of {path.parent.name} {state}; run: twindex check, then index again"
            raise DamagedIndexError(message) from error
        store = cls(index)
        ivf = store._ivf()
        if ivf is not None:
            lists = faiss.downcast_InvertedLists(ivf.invlists)
            if isinstance(lists, faiss.OnDiskInvertedLists):
                lists.prefetch_nthread = 0  # starting 32 threads a query costs more than it saves
        return store


#: How FAISS marks its files.
_KIND = re.compile(rb"I[A-Za-z0-9]{3}")
_FILTERING_IVF = {faiss.IndexIVFFlat, faiss.IndexIVFScalarQuantizer, faiss.IndexIVFPQ}


def _parameters(index: "faiss.Index", k: int, effort: int) -> "faiss.SearchParameters | None":
    """Return the search parameters of an effort, through whatever an index is wrapped in."""
    inner = faiss.downcast_index(index)
    if isinstance(inner, faiss.IndexIVF):
        return faiss.SearchParametersIVF(nprobe=effort)
    if isinstance(inner, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(efSearch=max(effort, k))
    if isinstance(inner, faiss.IndexRefine):
        has_lists = faiss.try_extract_index_ivf(inner.base_index) is not None
        candidates = inner.k_factor * _UNIT if has_lists else effort
        return faiss.IndexRefineSearchParameters(
            k_factor=max(1.0, candidates / k), base_index_params=_parameters(inner.base_index, k, effort)
        )
    if isinstance(inner, faiss.IndexPreTransform):
        deeper = _parameters(inner.index, k, effort)
        return None if deeper is None else faiss.SearchParametersPreTransform(index_params=deeper)
    return None


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as handle:
        return handle.read(4)


def _reason(error: Exception) -> str:
    """Return what FAISS says went wrong, without where in its source."""
    text = " ".join(str(error).split())
    return re.sub(r"^Error in .* at \S+:\d+: (Error: )?", "", text)
