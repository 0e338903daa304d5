"""Folders of mixed files: what is read, what is passed over and why."""

import gzip
import os
import sys

import pytest

from corpora.catalog import open_collection
from corpora.errors import UnreadableFileError
from corpora.limits import Limits
from corpora.options import DEFAULT_OPTIONS, ReadOptions
from corpora.read_log import ReadLog


def _read(folder, options=DEFAULT_OPTIONS, *, strict=False):
    log = ReadLog(strict=strict)
    documents = list(open_collection(folder, options).documents(log))
    return {document.doc_id: document for document in documents}, log.summary()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("alpha")
    (tmp_path / "b" / "d.md").write_text("# Delta\ntext")
    (tmp_path / "b" / "c" / "e.txt").write_text("echo")
    (tmp_path / ".hidden.txt").write_text("hidden")
    (tmp_path / "b" / ".git").mkdir()
    (tmp_path / "b" / ".git" / "x.txt").write_text("hidden too")
    (tmp_path / "b" / "image.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "b" / "table.csv").write_text("id,text\n1,one row\n")
    return tmp_path


def test_files_are_documents_named_by_their_path_in_order(folder):
    documents, summary = _read(folder)
    assert list(documents) == ["a.txt", "b/c/e.txt", "b/d.md"]
    assert documents["b/d.md"].source == str(folder / "b" / "d.md")
    assert summary.files == 3
    assert {skipped.reason: skipped.count for skipped in summary.skipped} == {
        "other file type": 1,
        "records among texts, read only if --include names them": 1,
    }


def test_strict_minds_bad_files_not_other_files(folder):
    documents, _ = _read(folder, strict=True)
    assert len(documents) == 3
    (folder / "binary.txt").write_bytes(b"\0\1\2")
    with pytest.raises(UnreadableFileError, match=r"binary\.txt"):
        _read(folder, strict=True)


def test_globs_choose(folder):
    assert list(_read(folder, ReadOptions(include=("*.md",)))[0]) == ["b/d.md"]
    assert list(_read(folder, ReadOptions(exclude=("b/*",)))[0]) == ["a.txt"]
    assert list(_read(folder, ReadOptions(exclude=("b",)))[0]) == ["a.txt"]
    assert list(_read(folder, ReadOptions(include=("b/c/**",)))[0]) == ["b/c/e.txt"]
    assert list(_read(folder, ReadOptions(include=("*.csv",)))[0]) == ["1"]
    assert sorted(_read(folder, ReadOptions(hidden=True))[0])[:2] == [".hidden.txt", "a.txt"]


def test_included_files_of_any_name_are_read_as_text(tmp_path):
    (tmp_path / "ls.1").write_text("list directory contents")
    with gzip.open(tmp_path / "cp.1.gz", "wt") as file:
        file.write("copy files")
    (tmp_path / "tool").write_bytes(b"\x7fELF\0\0")
    documents, summary = _read(tmp_path, ReadOptions(include=("*",)))
    assert {doc_id: document.text for doc_id, document in documents.items()} == {
        "cp.1.gz": "copy files",
        "ls.1": "list directory contents",
    }
    assert summary.skipped[0].reason == "binary, where text was expected"


def test_binary_file_among_text_files_is_skipped_and_named(folder):
    (folder / "binary.txt").write_bytes(b"text\0\1\2")
    documents, summary = _read(folder)
    assert len(documents) == 3
    assert summary.skipped[0].reason == "binary, where text was expected"
    assert summary.skipped[0].examples == (str(folder / "binary.txt"),)


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_links_are_followed_once_and_never_in_a_loop(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.txt").write_text("a")
    (outside / "o.txt").write_text("o")
    (inside / "loop").symlink_to(inside)
    (outside / "back").symlink_to(inside)
    (inside / "one").symlink_to(outside)
    (inside / "two").symlink_to(outside)
    (inside / "same.txt").symlink_to(inside / "a.txt")
    (inside / "gone.txt").symlink_to(tmp_path / "nowhere")
    (inside / "self").symlink_to(inside / "self")
    documents, _ = _read(inside)
    assert len(documents) == 2
    assert documents["a.txt"].text == "a"
    assert {document.text for document in documents.values()} == {"a", "o"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe_does_not_hang(folder):
    os.mkfifo(folder / "pipe.txt")
    _, summary = _read(folder)
    assert any(skipped.reason == "neither file nor folder" for skipped in summary.skipped)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_file_without_read_permission_is_skipped(folder):
    (folder / "a.txt").chmod(0)
    documents, summary = _read(folder)
    assert "a.txt" not in documents
    assert summary.skipped[0].reason == "cannot be opened"


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes on Linux")
def test_file_name_that_is_no_utf8_gives_an_id_that_can_be_written(tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.txt", "w") as file:  # noqa: PTH123 - a name of bytes
        file.write("x")
    (doc_id,) = _read(tmp_path)[0]
    assert doc_id.encode().decode() == "caf\ufffd.txt"


def test_folder_of_shards_is_read_as_records(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(f'{{"_id": "{number}", "text": "shard {number}"}}\n')
    documents, summary = _read(tmp_path)
    assert list(documents) == ["0", "1", "2"]
    assert summary.files == 3


def test_shards_without_ids_are_told_apart_by_path_and_line(tmp_path):
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.csv").write_text("text\na text\n")
    assert list(_read(tmp_path)[0]) == ["x/part.csv:2", "y/part.csv:2"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe “q”".encode(), "Größe “q”"),
        ("Größe “q”".encode("utf-8-sig"), "Größe “q”"),
        ("Größe “q”".encode("utf-16"), "Größe “q”"),
        ("Größe “q”".encode("cp1252"), "Größe “q”"),
        ("Größe é".encode("latin-1"), "Größe é"),
        (b"one\r\ntwo\r\n", "one\ntwo"),
        (b"", ""),
        (("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 4).encode("cp1251"), "Съешь"),
    ],
)
def test_encodings_of_text_files(tmp_path, data, text):
    (tmp_path / "a.txt").write_bytes(data)
    documents, _ = _read(tmp_path)
    found = documents["a.txt"].text
    assert found.startswith(text) if text == "Съешь" else found == text


def test_text_larger_than_the_limit_is_skipped(folder):
    (folder / "large.txt").write_text("x" * 2000)
    documents, summary = _read(folder, ReadOptions(limits=Limits(text_bytes=1000)))
    assert "large.txt" not in documents
    assert summary.skipped[0].reason.startswith("larger than 1,000 bytes")
