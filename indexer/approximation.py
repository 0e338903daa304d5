"""Which kind of FAISS index a collection gets, and how far an approximate one is searched.

Exact search reads n x d floats a query. Up to `EXACT_FLOATS` that takes a few milliseconds and nothing is to be
gained. Beyond, every vector is kept twice: as 4-bit product codes that the processor compares 32 at a time
(Andre, Kermarrec and Le Scouarnec, "Quicker ADC", 2019; FAISS's fast scan), and as 16-bit floats, by which the best
candidates of the codes are ranked again. From `SCAN_FLOATS` on, inverted lists keep a query from scanning all codes.

Measured on a million texts, two idle cores, p50 of a query: fitted vectors of 384 dimensions take 9.3 ms at recall@10
.9996 (128 codes, 2,000 candidates) where 1,024 inverted lists of plain floats take 120 ms at .98, three quarters of
the lists probed: vectors of short texts form no clusters to speak of. Averaged word vectors of 50 dimensions: 2.7 ms at
.9988 against 6 ms at .977.

How many candidates (or lists) a query looks at is chosen on a sample against exact search: the least number, on a grid
of powers of two and the values half way between, that reaches the target on half of the sample. The recall that is
reported was measured on the other half. The sample's queries are short runs of words cut from the collection's texts,
encoded as queries are: whole texts would find themselves and make the search look better than it is, and real queries
are short.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexer.stores.vector import VectorStore
from indexer.vectors import Vectors

EXACT_FLOATS = 25_000_000
SCAN_FLOATS = 2_000_000_000
TARGET_RECALL = 0.98
SAMPLE = 512
#: Rows looked at closely by every search: an evaluation asks for 1,000 documents (1,508 rows), and its first 10 are
#: to be the same ones that a query for 10 finds.
FEWEST_ROWS = 2000
DEPTH = 10
_SLACK = 22  # rows beyond the 10th kept, to know which tie with it
_TIE = 1e-5


def choose_factory(n: int, dimension: int) -> str:
    """Return the factory string for n vectors."""
    if n * dimension <= EXACT_FLOATS:
        return "Flat"
    # Two dimensions a code, three where there are many: the codes of 384 dimensions tell more than is needed.
    wanted = (3, 2, 4, 1) if dimension >= 128 else (2, 1)
    codes = dimension // next(size for size in wanted if dimension % size == 0)
    scanned = f"PQ{codes}x4fs,Refine(SQfp16)"
    lists = 1 << max(4, round(np.log2(np.sqrt(n))))
    return scanned if n * dimension <= SCAN_FLOATS else f"IVF{lists},{scanned}"


def training_rows(factory: str) -> int:
    """Return how many vectors an index is trained on, at most.

    FAISS learns a codebook from 256 rows an entry and passes over the others; codes of 4 bits have 16 entries, and what
    more they were given would only be held in memory.
    """
    return 16_384 if re.match(r"PQ\d+x4", factory) else 100_000


def cut_fragments(texts: Iterable[str], rng: np.random.Generator) -> list[str]:
    """Return one run of 3 to 8 words of each text; a shorter text whole, an empty one not at all."""
    found = []
    for text in texts:
        words = text.split()
        length = int(rng.integers(3, 9))
        start = int(rng.integers(0, max(1, len(words) - length + 1)))
        if words:
            found.append(" ".join(words[start : start + length]))
    return found


@dataclass
class ExactBest:
    """The best rows of a sample of (q, d) queries by exact search, kept up while vectors stream by."""

    queries: Vectors
    scores: NDArray[np.float32] = field(init=False)
    rows: NDArray[np.int64] = field(init=False)
    _seen: int = 0

    def __post_init__(self) -> None:
        """Start with nothing found."""
        self.scores = np.zeros((len(self.queries), 0), np.float32)
        self.rows = np.zeros((len(self.queries), 0), np.int64)

    def watch(self, blocks: Iterable[Vectors]) -> Iterator[Vectors]:
        """Pass blocks on, and keep each query's best rows of them."""
        for block in blocks:
            self._take(block)
            yield block

    def _take(self, block: Vectors) -> None:
        keep = DEPTH + _SLACK
        found = self.queries @ block.T
        if found.shape[1] > keep:
            places = np.argpartition(-found, keep - 1, axis=1)[:, :keep]
            found = np.take_along_axis(found, places, 1)
        else:
            places = np.broadcast_to(np.arange(found.shape[1]), found.shape)
        scores = np.concatenate([self.scores, found], axis=1)
        rows = np.concatenate([self.rows, places + self._seen], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :keep]
        self.scores, self.rows = np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
        self._seen += len(block)

    def recall(self, store: VectorStore, chosen: Sequence[int] | NDArray[np.int64]) -> float:
        """Return the mean recall@10 of some of the queries; a row that ties with the 10th counts as one of the ten."""
        if not len(chosen) or not self.rows.shape[1]:
            return 1.0
        _, rows = store.search(self.queries[chosen], DEPTH)
        shares = []
        for found, exact, scores in zip(rows, self.rows[chosen], self.scores[chosen], strict=True):
            depth = min(DEPTH, len(exact))
            good = exact[scores >= scores[depth - 1] - _TIE]
            shares.append(min(depth, len(np.intersect1d(found, good))) / depth)
        return float(np.mean(shares))


@dataclass(frozen=True, slots=True)
class Tuning:
    """The effort chosen (0: none to choose), the recall@10 measured with it, and how many queries measured it."""

    effort: int
    recall: float
    queries: int
    target: float

    @property
    def reached(self) -> bool:
        """Whether the recall measured is the target, give or take the error of the sample."""
        error = np.sqrt(max(self.recall * (1 - self.recall), 1e-9) / max(1, self.queries * DEPTH))
        return bool(self.recall >= self.target - 2 * error)


def tune(store: VectorStore, best: ExactBest, target: float = TARGET_RECALL, *, fewest: int = FEWEST_ROWS) -> Tuning:
    """Set a store's search effort to the least that reaches a target recall@10 on half of the sample.

    At least so much that `fewest` rows are looked at closely. Where no effort reaches the target
    (the kind's codes are too coarse), the least that comes within .002 of the most.
    """
    tuned, held_out = np.arange(0, len(best.queries), 2), np.arange(1, len(best.queries), 2)
    most = store.most_effort
    if most:
        least = store.least_effort(fewest)
        grid = sorted({min(most, step * 2**power // 2) for power in range(1, 15) for step in (2, 3)} | {most})
        grid = sorted({max(least, effort) for effort in grid})
        reached: dict[int, float] = {}
        for effort in grid:
            store.set_effort(effort)
            reached[effort] = best.recall(store, tuned)
            if reached[effort] >= target:
                break
        top = max(reached.values())
        store.set_effort(next(effort for effort in grid if reached[effort] >= min(target, top - 0.002)))
    measured = held_out if len(held_out) else tuned
    return Tuning(store.effort, best.recall(store, measured), len(measured), target)
