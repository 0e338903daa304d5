"""A damaged file of any kind: named by the check, one line from a query, repaired by indexing again."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from corpora.document import Document
from indexer.checking import check_index
from indexer.errors import DamagedIndexError, IndexerError, NotAnIndexError
from indexer.layout import inside
from indexer.manifest import file_digests, load_checks, save_checks
from indexer.opening import open_index
from indexer.publication import writing
from indexer.stores.vector import VectorStore
from search.asking import ask
from search.retrieval.searcher import Searcher

TEXTS = [Document(f"d{number}", text) for number, text in enumerate(["river bank", "money loan", "zqx", "boat water"])]


@pytest.fixture(scope="module")
def pristine(build_once: Callable[..., Path]) -> Path:
    return build_once(TEXTS, queries={"q": "river"}, qrels={"q": {"d0": 1}})


@pytest.fixture
def root(pristine: Path, copy_index: Callable[[Path], Path]) -> Path:
    return copy_index(pristine)


def files(root: Path) -> list[str]:
    generation = open_index(root).generation.root
    return [*sorted(path.relative_to(root).as_posix() for path in generation.rglob("*") if path.is_file()), "CURRENT"]


def test_a_whole_index_has_no_fault(root: Path) -> None:
    report = check_index(root)
    assert report.is_whole
    assert report.facts == {"documents": 4, "passages": 4, "texts": 4, "bm25": 4, "static": 4}
    assert report.notes == ()


@pytest.mark.parametrize("how", ["emptied", "truncated", "missing", "altered"])
def test_every_damaged_file_is_named_and_no_answer_comes_from_it(
    how: str, pristine: Path, copy_index: Callable[[Path], Path]
) -> None:
    for name in files(pristine):
        root = copy_index(pristine)
        path = root / name
        content = path.read_bytes()
        match how:
            case "emptied":
                path.write_bytes(b"")
            case "truncated":
                path.write_bytes(content[: len(content) // 2])
            case "missing":
                path.unlink()
            case _:
                middle = len(content) // 2
                path.write_bytes(content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1 :])
        if name == "CURRENT" and how == "missing":
            with pytest.raises(NotAnIndexError):
                check_index(root)
        else:
            report = check_index(root)
            short = name.split("/", 1)[-1]
            assert any(short in fault.where or short in fault.found for fault in report.faults), (name, report)
            assert all(fault.remedy for fault in report.faults)
        if name.endswith("cost.json"):
            continue  # a query does not need it
        with pytest.raises(IndexerError) as caught:
            ask(Searcher.open(root), "river bank")
        assert "\n" not in str(caught.value), name


def test_indexing_again_repairs_any_damage(
    pristine: Path, copy_index: Callable[[Path], Path], build: Callable[..., Path]
) -> None:
    expected = Searcher.open(pristine).search("river").answers["static"].hits
    one_of_a_kind = {(Path(name).parent, Path(name).suffix): name for name in files(pristine)}
    for name in one_of_a_kind.values():
        root = copy_index(pristine)
        (root / name).write_bytes(b"")
        build(TEXTS, root=root, queries={"q": "river"}, qrels={"q": {"d0": 1}})
        assert check_index(root).is_whole, name
        assert Searcher.open(root).search("river").answers["static"].hits == expected, name


def test_vectors_that_are_no_unit_vectors_are_found(root: Path) -> None:
    index = open_index(root)
    layout = index.generation.retriever("static")
    vectors = index.vectors("static").store.reconstruct(np.arange(4)).copy()
    vectors[0] *= 2
    vectors[1, 0] = np.nan
    VectorStore.build([vectors], 4).save(layout.vectors)
    vouch(root, layout.vectors)
    found = {fault.found for fault in check_index(root).faults}
    assert found == {"1 vectors hold NaN or infinity", "1 vectors are not of length 1"}


def test_stores_that_do_not_belong_together_are_found(root: Path) -> None:
    index = open_index(root)
    layout = index.generation.retriever("static")
    vectors = index.vectors("static").store.reconstruct(np.arange(3))
    VectorStore.build([vectors], 4).save(layout.vectors)
    vouch(root, layout.vectors)
    (fault,) = check_index(root).faults
    assert fault.where == "static"
    assert "holds 3 vectors" in fault.found


def vouch(root: Path, path: Path) -> None:
    """Write a changed file's checksum down, as somebody would who made the index by hand."""
    generation = open_index(root).generation
    checks = load_checks(generation.checks)
    save_checks(generation.checks, {**checks, "files": file_digests(generation)})
    assert path.exists()


def test_files_that_nobody_wrote_and_links_are_named(root: Path) -> None:
    generation = open_index(root).generation.root
    (generation / "lexical" / "more.seg").write_bytes(b"x")
    (generation / "link").symlink_to("/etc/hostname")
    assert {fault.where for fault in check_index(root).faults} == {"lexical/more.seg", "link"}


def test_a_writer_at_work_and_leftovers_are_told_as_notes(root: Path) -> None:
    from indexer.layout import IndexLayout

    (root / "generation-000007-0badc0de.part").mkdir()
    with writing(IndexLayout(root)):
        report = check_index(root)
    assert report.is_whole
    assert ["is writing this index now" in report.notes[0], "leftover" in report.notes[1]] == [True, True]
    (root / "LOCK").write_text("4711 on elsewhere")
    assert "4711 on elsewhere ended while it was writing" in check_index(root).notes[0]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "", "a/../../b", "C:\\x", 7, "folder"])
def test_names_in_an_index_cannot_leave_its_folder(name: object, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DamagedIndexError, match="is no file in it"):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["../static", "/tmp/x", "..", "lexical", "a/b", ""])
def test_a_retriever_named_as_a_path_is_refused(name: str, root: Path) -> None:
    path = open_index(root).generation.manifest
    path.write_text(path.read_text().replace('"name": "static"', f'"name": {json.dumps(name)}'))
    with pytest.raises(DamagedIndexError, match=r"manifest\.json is damaged"):
        open_index(root)


@pytest.mark.parametrize("name", ["../x", "generation-1", "", "\x00", "/tmp", "generation-000001/../.."])
def test_a_live_generation_outside_the_folder_is_refused(name: str, root: Path) -> None:
    (root / "CURRENT").write_text(name)
    with pytest.raises(NotAnIndexError, match="CURRENT"):
        open_index(root)
