"""The searcher: opens an index and runs its retrievers side by side."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from corpora.judgements import Query
from corpora.progress import Progress, Silent
from indexer.encoder import Coverage, Encoder, LoadingEncoder, Role, WordEncoder
from indexer.manifest import RetrieverRecord
from indexer.opening import OpenIndex, open_index, reading_live
from indexer.spec import Family
from indexer.stores.documents import Selection
from search.errors import FilterError, QueryError
from search.ranking import Hit, QueryCost, Ranking, Run, ScoredDocument
from search.retrieval.dense import DenseRetriever, QueryVectors
from search.retrieval.fusion import DEPTH, HybridRetriever, K, reading_depth
from search.retrieval.lexical import LexicalRetriever
from search.retrieval.retriever import Retrieved, Retriever

#: Hits that the timed answers to many queries have.
TIMED_HITS = 10
_UNASKED = "a query that nobody asked"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one retriever answered to one query.

    `coverage` says which of the query's words a table of word vectors knows (None where there is no table);
    `bytes_per_text` what the retriever stores for a text.
    """

    hits: tuple[Hit, ...]
    cost: QueryCost
    coverage: Coverage | None = None
    bytes_per_text: float = 0.0

    @property
    def ranking(self) -> list[ScoredDocument]:
        """The hits as a ranking."""
        return [ScoredDocument(hit.doc_id, hit.score) for hit in self.hits]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of several retrievers to one query, in the order of the index."""

    query: str
    answers: Mapping[str, Answer]

    def first(self, k: int) -> "Comparison":
        """Return the same answers, cut to their first k hits."""
        answers = {name: replace(answer, hits=answer.hits[:k]) for name, answer in self.answers.items()}
        return Comparison(self.query, answers)


@dataclass(frozen=True, slots=True)
class Batch:
    """Rankings and costs of many queries: retriever name -> query id -> ranking or cost."""

    runs: Mapping[str, Run]
    costs: Mapping[str, Mapping[str, QueryCost]]


@dataclass
class Searcher:
    """Retrievers over one open index."""

    index: OpenIndex
    retrievers: Mapping[str, Retriever]
    opening_ms: float = 0.0
    _sizes: dict[str, float] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path | str, retrievers: Sequence[str] | None = None) -> "Searcher":
        """Open an index with all of its retrievers, or those named; a hybrid brings its members along unseen.

        Raises
        ------
        IndexerError
            If the folder is no index, is damaged, or holds no retriever of a given name.
        """
        return reading_live(path, lambda: cls._open(path, retrievers))

    @classmethod
    def _open(cls, path: Path | str, retrievers: Sequence[str] | None) -> "Searcher":
        started = time.perf_counter()
        index = open_index(path)
        names = list(retrievers or [record.name for record in index.manifest.retrievers])
        made: dict[str, Retriever] = {}
        shared = QueryVectors()
        for name in names:
            _make(index, index.record(name), made, shared)
        for retriever in made.values():
            if isinstance(retriever, DenseRetriever):
                _load(retriever.parts.encoder)
        searcher = cls(index, {name: made[name] for name in names})
        # All that queries need is opened by now: a searcher answers on when its generation is replaced and removed.
        _ = index.documents, index.judgements, [searcher.bytes_per_text(name) for name in names]
        searcher.opening_ms = (time.perf_counter() - started) * 1000
        return searcher

    @property
    def names(self) -> list[str]:
        """Names of the retrievers, in order."""
        return list(self.retrievers)

    def close(self) -> None:
        """Close the index."""
        self.index.close()

    def select(self, filters: Iterable[str]) -> Selection | None:
        """Return the documents that carry all given `field=value` pairs; None where nothing is asked.

        Raises
        ------
        FilterError
            If a filter has no `=`, or no document has such a field.
        """
        pairs = [_parse_filter(text) for text in filters]
        if not pairs:
            return None
        known = self.index.documents.metadata_fields()
        for name, _ in pairs:
            if name not in known:
                message = (
                    f"no document has a metadata field {name!r}; fields of this index: {', '.join(known) or 'none'}"
                )
                raise FilterError(message)
        return self.index.documents.select(pairs)

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        selection: Selection | None = None,
        exclude: frozenset[str] = frozenset(),
    ) -> Comparison:
        """Answer one query with every retriever.

        Parameters
        ----------
        query
            Free text.
        k
            Hits wanted of each retriever.
        selection
            The documents to choose from (`select`); all where None.
        exclude
            Document ids never shown: the query itself where queries are documents.

        Raises
        ------
        QueryError
            If k is below 1.
        """
        if k < 1:
            message = f"-k {k}: ask for at least 1 hit"
            raise QueryError(message)
        found = self._retrieve(query, k + len(exclude), selection)
        answers = {}
        for name, retrieved in found.items():
            ranking = [document for document in retrieved.ranking if document.doc_id not in exclude][:k]
            answers[name] = Answer(
                tuple(self._hit(document, rank) for rank, document in enumerate(ranking, start=1)),
                retrieved.cost,
                self.coverage(name, query),
                self.bytes_per_text(name),
            )
        return Comparison(query, answers)

    def run(
        self,
        queries: Iterable[Query],
        depth: int = 1000,
        *,
        exclude_same_id: bool = False,
        progress: Progress | None = None,
    ) -> Batch:
        """Answer many queries one by one, as `search` would; fused lists are read to the depth that `search` reads.

        Costs are those of answering with `TIMED_HITS` hits, as a user asks, whatever the depth of the rankings.

        Parameters
        ----------
        queries
            The queries, ids unique.
        depth
            Documents wanted of each retriever.
        exclude_same_id
            Leave out the document that carries the query's id.
        progress
            Told of each query.
        """
        asked = list(queries)
        told = progress or Silent()
        runs: dict[str, Run] = {name: {} for name in self.retrievers}
        costs: dict[str, dict[str, QueryCost]] = {name: {} for name in self.retrievers}
        told.start("searching", len(asked), "queries")
        for query in asked:
            for name, retrieved in self._retrieve(query.text, TIMED_HITS, None).items():
                costs[name][query.query_id] = retrieved.cost
            for name, retrieved in self._retrieve(query.text, depth + exclude_same_id, None, evaluating=True).items():
                kept: Ranking = [
                    document
                    for document in retrieved.ranking
                    if not (exclude_same_id and document.doc_id == query.query_id)
                ][:depth]
                runs[name][query.query_id] = kept
            told.advance()
        told.finish()
        return Batch(runs, costs)

    def _retrieve(
        self, query: str, depth: int, selection: Selection | None, *, evaluating: bool = False
    ) -> dict[str, Retrieved]:
        """Run the retrievers; one that a hybrid needs too is run once, to the larger depth."""
        fused = DEPTH if evaluating else reading_depth(depth)
        needed: dict[str, tuple[Retriever, int]] = {}
        for retriever in self.retrievers.values():
            members = retriever.members if isinstance(retriever, HybridRetriever) else ()
            for member in members:
                needed[member.name] = (member, max(fused, needed.get(member.name, (member, 0))[1]))
        for name, retriever in self.retrievers.items():
            if not isinstance(retriever, HybridRetriever):
                needed[name] = (retriever, max(depth, needed.get(name, (retriever, 0))[1]))
        plain = {name: one.retrieve(query, reach, selection=selection) for name, (one, reach) in needed.items()}
        found = {}
        for name, retriever in self.retrievers.items():
            if isinstance(retriever, HybridRetriever):
                lists = [plain[member.name] for member in retriever.members]
                lists = [Retrieved(one.ranking[:fused], one.cost) for one in lists]
                found[name] = retriever.combine(lists, depth)
            else:
                found[name] = Retrieved(plain[name].ranking[:depth], plain[name].cost)
        return found

    def _hit(self, document: ScoredDocument, rank: int) -> Hit:
        stored = self.index.documents.fetch(document.doc_id, document.passage)
        if stored is None:
            return Hit(document.doc_id, document.score, rank, "", "")
        return Hit(
            document.doc_id,
            document.score,
            rank,
            stored.document.title,
            stored.passage,
            stored.document.source,
            document.passage,
        )

    def coverage(self, name: str, query: str) -> Coverage | None:
        """Return which words of a query a retriever's table knows; None where it has no table of words."""
        retriever = self.retrievers[name]
        encoder = retriever.parts.encoder if isinstance(retriever, DenseRetriever) else None
        return encoder.coverage(query) if isinstance(encoder, WordEncoder) else None

    def bytes_per_text(self, name: str) -> float:
        """Return the bytes a retriever stores for each text, its query encoder not counted."""
        if name not in self._sizes:
            retriever = self.retrievers[name]
            if isinstance(retriever, HybridRetriever):
                self._sizes[name] = sum(self._own_bytes(member) for member in retriever.members)
            else:
                self._sizes[name] = self._own_bytes(retriever)
        return self._sizes[name]

    def _own_bytes(self, retriever: Retriever) -> float:
        generation = self.index.generation
        texts = max(1, self.index.manifest.texts)
        if isinstance(retriever, LexicalRetriever):
            return sum(path.stat().st_size for path in generation.lexical.iterdir()) / texts
        return generation.retriever(retriever.name).vectors.stat().st_size / texts


def _load(encoder: Encoder) -> None:
    """Load what an encoder needs: that is opening, not the cost of a query."""
    if isinstance(encoder, LoadingEncoder):
        encoder.hold()
    else:
        encoder.encode([_UNASKED], role=Role.QUERY)


def _make(index: OpenIndex, record: RetrieverRecord, made: dict[str, Retriever], shared: QueryVectors) -> Retriever:
    if record.name not in made:
        maker = _MAKERS.get(record.family, _dense)
        made[record.name] = maker(index, record, made, shared)
    return made[record.name]


def _lexical(
    index: OpenIndex, record: RetrieverRecord, _made: dict[str, Retriever], _shared: QueryVectors
) -> Retriever:
    return LexicalRetriever(record.name, index.lexical(record.name), index.documents)


def _dense(index: OpenIndex, record: RetrieverRecord, _made: dict[str, Retriever], shared: QueryVectors) -> Retriever:
    return DenseRetriever(record.name, index.vectors(record.name), index.documents, shared)


def _hybrid(index: OpenIndex, record: RetrieverRecord, made: dict[str, Retriever], shared: QueryVectors) -> Retriever:
    members = tuple(_make(index, index.record(name), made, shared) for name in record.spec.members)
    return HybridRetriever(record.name, members, float(record.spec.get("k") or K))


_MAKERS: Mapping[Family, Callable[[OpenIndex, RetrieverRecord, dict[str, Retriever], QueryVectors], Retriever]] = {
    Family.BM25: _lexical,
    Family.HYBRID: _hybrid,
}


def _parse_filter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        message = f"--filter takes field=value, found {text!r}"
        raise FilterError(message)
    return name.strip(), value.strip()
