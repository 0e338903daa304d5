"""What several tests share."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.judgements import Query
from corpora.progress import Silent
from indexer.build import BuildSettings, build_index
from indexer.spec import parse_retrievers


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real collections that tests may use where it is present."""
    root = Path(__file__).resolve().parents[1]
    folder = (root / os.environ.get("TWINDEX_SHARED", "../shared") / "data").resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared test data at {folder}; set TWINDEX_SHARED to run this test")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


#: A table of word vectors small enough to work out by hand: two dimensions of water, two of money.
TINY_VECTORS = """river 1 0 0 0
water 0.8 0.2 0 0
bank 0.5 0 0.5 0
money 0 0 1 0
loan 0 0 0.8 0.2
boat 0.9 0.1 0 0
"""


@pytest.fixture(scope="session")
def tiny_vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GloVe text file of six words and four dimensions."""
    path = tmp_path_factory.mktemp("vectors") / "tiny.txt"
    path.write_text(TINY_VECTORS, encoding="utf-8")
    return path


@pytest.fixture
def build(tmp_path: Path, tiny_vectors: Path) -> Callable[..., Path]:
    """Build an index of a few documents with bm25, static vectors of the tiny table, and their fusion."""

    def make(
        documents: Sequence[Document | str],
        *,
        retrievers: str = "",
        name: str = "index",
        queries: Mapping[str, str] | None = None,
        qrels: Mapping[str, Mapping[str, int]] | None = None,
        exclude_same_id: bool = False,
    ) -> Path:
        held = [
            document if isinstance(document, Document) else Document(f"d{number}", document)
            for number, document in enumerate(documents)
        ]
        collection = Collection(
            "tiny",
            "test",
            lambda _log: iter(held),
            {query_id: Query(query_id, text) for query_id, text in (queries or {}).items()},
            {"test": qrels} if qrels else {},
            exclude_same_id=exclude_same_id,
        )
        static = f"static:vectors={tiny_vectors}"
        specs = parse_retrievers(retrievers or f"bm25,{static},hybrid:members=bm25+static")
        root = tmp_path / name
        build_index(collection, root, BuildSettings(tuple(specs)), progress=Silent())
        return root

    return make
