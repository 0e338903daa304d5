"""Lexical retrieval: BM25F over stems, the yardstick."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexer.stores.documents import DocumentStore, Selection
from search.ranking import QueryCost, ScoredDocument, ordered
from search.retrieval.retriever import Retrieved, cut

if TYPE_CHECKING:
    from indexer.stores.lexical import LexicalStore


@dataclass(frozen=True, slots=True)
class LexicalRetriever:
    """Answers from the Whoosh index."""

    name: str
    store: "LexicalStore"
    documents: DocumentStore

    def analyse(self, text: str) -> list[str]:
        """Return the terms of a text, as they are indexed."""
        from indexer.stores.lexical import analyse

        return analyse(text)

    def retrieve(self, query: str, depth: int, *, selection: Selection | None = None) -> Retrieved:
        """Return the best documents by BM25F; none where no word of the query occurs."""
        started = time.perf_counter()
        found = self.store.search(query, depth, allowed=None if selection is None else selection.documents)
        ids = self.documents.doc_ids(document for document, _ in found)
        ranking = ordered([ScoredDocument(ids[document], score) for document, score in found])
        return Retrieved(cut(ranking, depth), QueryCost(0.0, (time.perf_counter() - started) * 1000))
