"""Any sequence of additions, changes, deletions and crashes: the index answers as one built anew would."""

import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from corpora.collection import Collection
from corpora.document import Document
from corpora.progress import Silent
from indexer.build import build_index
from indexer.checking import check_index
from indexer.opening import open_index
from indexer.revision import revise
from indexer.stores import lexical
from search.retrieval.searcher import Searcher

WORDS = st.sampled_from(["river", "water", "bank", "money", "loan", "boat", "zqx", "Straße", "l'eau", "!", ""])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)
IDS = st.sampled_from(["1", "2", "10", "a b", "ä", '"q', "d/7", "x" * 40])
QUERIES = ("river bank", "money", "zqx", "strasse boat")


class Indexing(RuleBasedStateMachine):
    """A model of an index (a dict of documents) and the index itself."""

    builder: Any
    make_index: Callable[..., Path]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "index"
        self.model: dict[str, str] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize(documents=st.dictionaries(IDS, TEXTS, min_size=1))
    def index(self, documents: dict[str, str]) -> None:
        self.model = documents
        self.make_index(self._documents(self.model), root=self.root)

    @rule(documents=st.dictionaries(IDS, TEXTS, min_size=1, max_size=3))
    def add(self, documents: dict[str, str]) -> None:
        more = Collection("more", "test", lambda _log: iter(self._documents(documents)))
        revision = revise(self.root, add=[more])
        build_index(revision.collection, self.root, revision.settings, progress=Silent())
        self.model |= documents

    @precondition(lambda self: len(self.model) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        doc_id = data.draw(st.sampled_from(sorted(self.model)))
        revision = revise(self.root, delete=[doc_id])
        build_index(revision.collection, self.root, revision.settings, progress=Silent())
        del self.model[doc_id]

    @rule(text=TEXTS, data=st.data(), refit=st.booleans())
    def change_and_index_again(self, text: str, data: st.DataObject, refit: bool) -> None:
        self.model[data.draw(st.sampled_from(sorted(self.model)))] = text
        self.make_index(self._documents(self.model), root=self.root, refit=refit)

    @rule(documents=st.dictionaries(IDS, TEXTS, min_size=1), at=st.integers(1, 25))
    def crash(self, documents: dict[str, str], at: int) -> None:
        outcome = self.builder.run(self.root, self._documents(documents), lexical=True, die_at=at)
        assert outcome in {"killed", "done"}
        found = {document.doc_id: document.text for document in open_index(self.root).documents.iter_documents()}
        assert found in (self.model, documents)
        assert outcome == "killed" or found == documents
        self.model = found

    @invariant()
    def every_answer_is_that_of_an_index_built_anew(self) -> None:
        if not self.model:
            return
        assert check_index(self.root).is_whole
        searcher = Searcher.open(self.root, ["bm25", "static"])
        # A crash that comes too late leaves an index whose static vectors are whitened: statistics are what is frozen.
        parts = searcher.index.vectors("static")
        ids = list(self.model)
        encoded = parts.encoder.encode([self.model[doc_id] for doc_id in ids])
        vectors = parts.project(encoded)
        with tempfile.TemporaryDirectory() as folder:
            lexical.build([self.model[doc_id] for doc_id in ids], Path(folder))
            fresh = lexical.LexicalStore.open(Path(folder))
            for query in QUERIES:
                answers = searcher.search(query, 20).answers
                asked = parts.project(parts.encoder.encode([query]))[0]
                dense = {ids[row]: float(vectors[row] @ asked) for row in range(len(ids)) if encoded[row].any()}
                same(answers["static"].hits, dense if asked.any() else {}, 1e-5)
                same(answers["bm25"].hits, {ids[n]: score for n, score in fresh.search(query, 20)}, 1e-6)
            fresh.searcher.close()
        searcher.close()

    @staticmethod
    def _documents(documents: dict[str, str]) -> list[Document]:
        return [Document(doc_id, text) for doc_id, text in documents.items()]


def same(hits: Any, expected: dict[str, float], tolerance: float) -> None:
    """Compare an answer with scores by id: equal scores, and descending but for ties within the tolerance."""
    assert {hit.doc_id for hit in hits} == set(expected)
    np.testing.assert_allclose([hit.score for hit in hits], [expected[hit.doc_id] for hit in hits], atol=tolerance)
    scores = [expected[hit.doc_id] for hit in hits]
    assert all(a >= b - tolerance for a, b in pairwise(scores))


def run(builder: Any, make_index: Callable[..., Path], *, examples: int, steps: int) -> None:
    machine = type("Machine", (Indexing,), {"builder": builder, "make_index": staticmethod(make_index)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# Whoosh leaves files to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_few_sequences_of_updates_and_crashes(builder: Any, make_index: Callable[..., Path]) -> None:
    run(builder, make_index, examples=2, steps=5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_many_sequences_of_updates_and_crashes(builder: Any, make_index: Callable[..., Path]) -> None:
    run(builder, make_index, examples=40, steps=20)
