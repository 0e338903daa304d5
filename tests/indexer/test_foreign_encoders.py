"""An index asked with another model than its vectors were made with: refused by name, at any dimension."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from indexer.errors import IndexerError, PortabilityError
from indexer.manifest import file_digests, load_checks, save_checks
from indexer.opening import open_index
from search.retrieval.searcher import Searcher

Build = Callable[..., Path]
TEXTS = ["river bank", "money loan", "boat water"]


def table(path: Path, dimension: int) -> Path:
    rng = np.random.default_rng(dimension)
    words = ("river", "water", "bank", "money", "loan", "boat")
    path.write_text("".join(f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=dimension))}\n" for word in words))
    return path


def swap(root: Path, other: Path, part: str, *, vouched: bool) -> None:
    """Put a part of one index's static retriever into another's place."""
    generation = open_index(root).generation
    source, target = (open_index(path).generation.root / "static" / part for path in (other, root))
    if source.is_dir():
        shutil.rmtree(target)
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)
    if vouched:
        checks = load_checks(generation.checks)
        save_checks(generation.checks, {**checks, "files": file_digests(generation)})


@pytest.mark.parametrize("vouched", [False, True])
@pytest.mark.parametrize("dimension", [3, 5])
def test_another_table_is_refused_at_the_same_and_at_another_dimension(
    build: Build, tmp_path: Path, dimension: int, vouched: bool
) -> None:
    first, second = table(tmp_path / "a.txt", 5), table(tmp_path / "b.txt", dimension)
    if dimension == 5:
        second.write_text(second.read_text().replace("1", "2"))
    root = build(TEXTS, retrievers=f"static:vectors={first}")
    other = build(TEXTS, retrievers=f"static:vectors={second}", name="other")
    swap(root, other, "encoder", vouched=vouched)
    with pytest.raises(PortabilityError, match=r"static/encoder is not the one that made its vectors.*index again"):
        Searcher.open(root)


def test_another_model_of_the_same_dimension_is_refused(build: Build, tiny_transformers: Mapping[str, Path]) -> None:
    root, other = (
        build(TEXTS, retrievers=f"static=contextual:model={tiny_transformers[kind]},precision=fp32", name=kind)
        for kind in ("plain", "masked")
    )
    assert open_index(root).record("static").dimension == open_index(other).record("static").dimension
    swap(root, other, "encoder", vouched=True)
    with pytest.raises(PortabilityError, match="is not the one that made its vectors"):
        Searcher.open(root)


def test_vectors_of_another_dimension_are_refused(build: Build, tmp_path: Path) -> None:
    root = build(TEXTS, retrievers=f"static:vectors={table(tmp_path / 'a.txt', 5)}")
    other = build(TEXTS, retrievers=f"static:vectors={table(tmp_path / 'b.txt', 3)}", name="other")
    swap(root, other, "vectors.faiss", vouched=True)
    with pytest.raises(IndexerError, match="vectors of 3 dimensions, the manifest says 3 of 5"):
        Searcher.open(root)


def test_more_lists_than_texts_is_said_and_flat_answers(build: Build, tmp_path: Path) -> None:
    texts = [f"river {number} bank" for number in range(200)]
    how = f"static:vectors={table(tmp_path / 'a.txt', 5)},factory=IVF1024;Flat"
    summary = build(texts, retrievers=how, summary=True)
    note = next(note for note in summary.notes if "IVF1024,Flat makes 1024 lists" in note)
    assert "used Flat instead, which is exact" in note
    assert len(Searcher.open(tmp_path / "index").search("bank").answers["static"].hits) == 10


def test_ten_times_as_many_texts_are_whitened_anew_and_that_is_said(build: Build, tmp_path: Path) -> None:
    words = ("river", "water", "bank", "money", "loan", "boat")
    rng = np.random.default_rng(3)
    texts = list({" ".join(rng.choice(words, 6)): None for _ in range(220)})
    how = f"static:vectors={table(tmp_path / 'a.txt', 5)},whitening=0.5"
    root = build(texts[:20], retrievers=how)
    before = open_index(root).record("static").whitening
    summary = build(texts, retrievers=how, summary=True)
    assert "most texts are new to this index: all statistics are made anew" in summary.notes
    assert open_index(root).record("static").whitening != before
    assert open_index(root).checks["retrievers"]["static"]["whitening"]["fitted_on"] == len(texts)
