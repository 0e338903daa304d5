"""An index of another format is refused by name with the command that makes it anew, whichever file says so."""

import gc
import hashlib
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from indexer.checking import check_index
from indexer.encoders import LOADERS, open_encoder
from indexer.errors import DamagedIndexError, FormatVersionError, IndexerError
from indexer.layout import GenerationLayout
from indexer.manifest import file_digests, load_checks, save_checks
from indexer.opening import open_index
from indexer.revision import revise
from search.asking import ask
from search.retrieval.searcher import Searcher

COMMAND = "twindex index COLLECTION INDEX"
TEXTS = ["river bank", "money loan", "boat water", "river water boat"]


@pytest.fixture(autouse=True)
def _closed_quietly() -> Iterator[None]:
    """Whoosh leaves a table of contents open that it does not know: it is closed here, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.fixture
def root(build: Callable[..., Path], tiny_vectors: Path) -> Path:
    return build(TEXTS, retrievers=f"bm25,static:vectors={tiny_vectors},whitening=0.5")


def of_another_format(path: Path) -> None:
    """Turn a file of an index into what another version would have written."""
    match path.suffix:
        case ".json":
            content = json.loads(path.read_text())
            path.write_text(json.dumps({**content, "format_version": 7}))
        case ".npz":
            with np.load(path) as held:
                arrays = dict(held)
            np.savez(path, **{**arrays, "format_version": np.int64(7)})
        case ".sqlite":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA user_version=7")
        case _:
            content = bytearray(path.read_bytes())
            at = content.index((-111).to_bytes(4, "big", signed=True))  # Whoosh's table of contents
            content[at : at + 4] = (-110).to_bytes(4, "big", signed=True)
            path.write_bytes(bytes(content))


def vouch(generation: GenerationLayout) -> None:
    checks = load_checks(generation.checks)
    save_checks(generation.checks, {**checks, "files": file_digests(generation)})


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "checks.json",
        "documents.sqlite",
        "static/encoder/encoder.json",
        "static/whitening.npz",
        "lexical/_MAIN_1.toc",
    ],
)
def test_a_file_of_another_format_is_refused_by_name_and_indexing_again_makes_it_anew(
    name: str, root: Path, build: Callable[..., Path], tiny_vectors: Path
) -> None:
    generation = open_index(root).generation
    of_another_format(generation.root / name)
    if name not in {"manifest.json", "checks.json"}:
        vouch(generation)
    with pytest.raises(FormatVersionError) as caught:
        ask(Searcher.open(root), "river bank")
    said = str(caught.value)
    assert COMMAND in said
    assert "format version 7" in said or ("lexical" in name and "format version -110" in said)
    assert "damaged" not in said
    assert "\n" not in said
    (fault,) = check_index(root).faults
    assert COMMAND in fault.found + fault.remedy
    assert "format version" in fault.found
    build(TEXTS, retrievers=f"bm25,static:vectors={tiny_vectors},whitening=0.5")
    assert check_index(root).is_whole
    assert len(Searcher.open(root).search("river").answers["static"].hits) >= 2


def test_checks_without_a_digest_are_of_the_format_before(root: Path) -> None:
    path = open_index(root).generation.checks
    content = json.loads(path.read_text())
    del content["digest"], content["format_version"]
    path.write_text(json.dumps(content))
    with pytest.raises(FormatVersionError, match=r"checks\.json has format version 0, this twindex reads 1"):
        load_checks(path)
    (fault,) = check_index(root).faults
    assert "format version 0" in fault.found


def test_checks_that_do_not_name_their_format_are_read(root: Path) -> None:
    path = open_index(root).generation.checks
    expected = load_checks(path)
    without = {key: value for key, value in expected.items() if key != "digest"}
    digest = hashlib.sha256(json.dumps(without, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps({**without, "digest": digest}))
    assert load_checks(path) == expected
    assert check_index(root).is_whole


def test_nothing_is_added_to_an_index_of_another_format(root: Path) -> None:
    of_another_format(open_index(root).generation.manifest)
    with pytest.raises(FormatVersionError, match=COMMAND):
        revise(root, delete=["0"])


@pytest.mark.parametrize("kind", sorted(LOADERS))
def test_every_kind_of_encoder_names_its_format(kind: str, tmp_path: Path) -> None:
    record = {"kind": kind, "format": 7, "format_version": 7, "tokenizer_version": 2, "files": {}}
    (tmp_path / "encoder.json").write_text(json.dumps(record))
    with pytest.raises(FormatVersionError, match=rf"encoder\.json has format version 7.*{COMMAND}"):
        open_encoder(tmp_path)


def test_an_unknown_kind_of_encoder_or_store_is_named_with_the_command(root: Path, tmp_path: Path) -> None:
    (tmp_path / "encoder.json").write_text('{"kind": "of tomorrow"}')
    with pytest.raises(DamagedIndexError, match=f"'of tomorrow'.*{COMMAND}"):
        open_encoder(tmp_path)
    generation = open_index(root).generation
    path = generation.retriever("static").vectors
    path.write_bytes(b"IxTm" + path.read_bytes()[4:])
    vouch(generation)
    with pytest.raises(IndexerError, match=f"IxTm.*another FAISS wrote it; build it anew: {COMMAND}"):
        Searcher.open(root)
