"""What several tests share."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpora.collection import Collection
from corpora.document import Document
from corpora.judgements import Query
from corpora.progress import Silent
from indexer.build import BuildSettings, BuildSummary, build_index
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


@pytest.fixture(scope="session")
def make_index(tiny_vectors: Path) -> Callable[..., Any]:
    """Build an index of a few documents in a folder: bm25, static vectors of the tiny table, and their fusion."""

    def make(
        documents: Sequence[Document | str],
        *,
        root: Path,
        retrievers: str = "",
        queries: Mapping[str, str] | None = None,
        qrels: Mapping[str, Mapping[str, int]] | None = None,
        exclude_same_id: bool = False,
        refit: bool = False,
        summary: bool = False,
    ) -> Path | BuildSummary:
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
        static = f"static:vectors={tiny_vectors},whitening=none"
        specs = parse_retrievers(retrievers or f"bm25,{static},hybrid:members=bm25+static")
        done = build_index(collection, root, BuildSettings(tuple(specs), refit=refit), progress=Silent())
        return done if summary else root

    return make


def _tiny_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [
        "the",
        "river",
        "bank",
        "account",
        "money",
        "water",
        "of",
        "a",
        "i",
        "sat",
        "on",
        "my",
        "is",
        "empty",
        "loan",
        "boat",
        "fish",
    ]
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *words, *letters, *(f"##{c}" for c in letters)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    special = {f"{role}_token": piece for role, piece in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=40, **special).save_pretrained(folder)


@pytest.fixture(scope="session")
def tiny_transformers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Folders of three random models of 16 dimensions and 2 layers: `masked`, `causal` and `plain`, without a head."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertModel, GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 76, "pad_token_id": 0, "initializer_range": 0.5}
    bert = BertConfig(
        **sizes,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=40,
    )
    gpt = GPT2Config(**sizes, n_embd=16, n_layer=2, n_head=2, n_positions=40)
    makers = {"masked": (BertForMaskedLM, bert), "causal": (GPT2LMHeadModel, gpt), "plain": (BertModel, bert)}
    folders = {}
    for name, (maker, config) in makers.items():
        folder = tmp_path_factory.mktemp(name)
        with torch.random.fork_rng():
            torch.manual_seed(5)
            maker(config).save_pretrained(folder)
        _tiny_tokenizer(folder)
        folders[name] = folder
    return folders


@pytest.fixture
def build(tmp_path: Path, make_index: Callable[..., Any]) -> Callable[..., Any]:
    """Build an index of a few documents in the test's own folder; over the one it built before, unless named."""

    def make(documents: Sequence[Document | str], *, name: str = "index", root: Path | None = None, **more: Any) -> Any:
        return make_index(documents, root=root or tmp_path / name, **more)

    return make
