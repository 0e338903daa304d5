"""HTML and PDF made to hurt: each costs a bounded amount and ends in one line."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from functools import partial
from pathlib import Path

import pytest

from corpora.catalog import open_collection
from corpora.errors import UnreadableFileError
from corpora.limits import Limits
from corpora.options import DEFAULT_OPTIONS, ReadOptions
from corpora.read_log import ReadLog
from corpora.readers import parsing_worker
from corpora.readers.confinement import Confinement


def _read(folder, options=DEFAULT_OPTIONS):
    log = ReadLog()
    documents = list(open_collection(folder, options).documents(log))
    return {document.doc_id: document for document in documents}, log.summary()


def _page(path, content):
    path.write_text(content, encoding="utf-8")


def test_html_says_what_a_reader_sees(tmp_path):
    _page(
        tmp_path / "a.html",
        "<!doctype html><html><head><title>The &amp; title</title><style>p {}</style></head><body>"
        "<script>alert('no')</script><h1>Head</h1><p>f<b>oo</b> <i>bar</i></p><ul><li>one</li><li>two</ul>"
        "<!-- comment --><div>x<div>y</div>z</div><table><tr><td>1<td>2</table>a<br>b&nbsp;c</body></html>",
    )
    documents, _ = _read(tmp_path)
    assert documents["a.html"].title == "The & title"
    assert documents["a.html"].text.split("\n") == [
        "Head", "foo bar", "one", "two", "x", "y", "z", "1", "2", "a", "b c",
    ]  # fmt: skip


def test_html_without_title_takes_its_first_heading(tmp_path):
    _page(tmp_path / "a.html", "<h1>Only <b>heading</b></h1><p>text")
    assert _read(tmp_path)[0]["a.html"].title == "Only heading"


def test_html_is_read_in_the_encoding_that_it_names(tmp_path):
    content = '<meta charset="windows-1251"><p>Привет'
    (tmp_path / "a.html").write_bytes(content.encode("cp1251"))
    (tmp_path / "wrong.html").write_bytes(b'<meta charset="klingon"><p>caf\xc3\xa9')
    documents, _ = _read(tmp_path)
    assert documents["a.html"].text == "Привет"
    assert documents["wrong.html"].text == "café"


def test_html_that_takes_quadratic_time_is_stopped_and_the_next_file_read(tmp_path):
    _page(tmp_path / "a.html", "<div>" * 1_000_000 + "x")
    _page(tmp_path / "b.html", "<p>fine")
    started = time.monotonic()
    documents, summary = _read(tmp_path, ReadOptions(limits=Limits(html_seconds=0.5)))
    assert time.monotonic() - started < 30
    assert list(documents) == ["b.html"]
    assert summary.skipped[0].reason == "takes longer than 0.5 seconds to parse"
    assert summary.skipped[0].examples == (str(tmp_path / "a.html"),)


def test_html_nested_deeply_is_read_without_recursion(tmp_path):
    _page(tmp_path / "a.html", "<i>" * 5000 + "deep" + "<p>x")
    assert "deep" in _read(tmp_path)[0]["a.html"].text


def test_html_larger_than_the_limit_is_skipped(tmp_path):
    _page(tmp_path / "a.html", "<p>" + "x" * 2000)
    documents, summary = _read(tmp_path, ReadOptions(limits=Limits(html_bytes=1000)))
    assert documents == {}
    assert "larger than 1,000 bytes" in summary.skipped[0].reason


_TEXT = b"BT /F1 12 Tf 72 720 Td (Hello river) Tj ET"


def test_pdf_pages_beyond_the_limit_are_left_out_and_announced(tmp_path, pdf_of):
    (tmp_path / "a.pdf").write_bytes(pdf_of(_TEXT, pages=5))
    documents, summary = _read(tmp_path, ReadOptions(limits=Limits(pdf_pages=2)))
    assert documents["a.pdf"].text == "Hello river\n\nHello river"
    assert "only the first 2 of its 5 pages are read" in summary.notes[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda pdf_of: b"%PDF-1.4\n",
        lambda pdf_of: b"%PDF-1.4\n" + b"\xff" * 2000,
        lambda pdf_of: b"",
        lambda pdf_of: pdf_of(b"BT (never closed"),
        lambda pdf_of: pdf_of(b"q " * 100_000),
        lambda pdf_of: pdf_of(b"[" * 100_000),
        lambda pdf_of: pdf_of(_TEXT).replace(b"/Kids [4 0 R]", b"/Kids [2 0 R]"),
        lambda pdf_of: pdf_of(_TEXT)[:-60],
    ],
    ids=["header", "noise", "empty", "open-string", "many-q", "deep-array", "page-tree-loop", "cut"],
)
def test_broken_pdf_is_skipped_or_read_but_never_a_traceback(tmp_path, pdf_of, make):
    (tmp_path / "a.pdf").write_bytes(make(pdf_of))
    (tmp_path / "b.txt").write_text("fine")
    documents, summary = _read(tmp_path, ReadOptions(limits=Limits(pdf_seconds=20)))
    assert documents["b.txt"].text == "fine"
    assert len(documents) + summary.skipped_count == 2


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on memory are kept on Linux")
def test_pdf_that_inflates_beyond_the_memory_limit_is_skipped(tmp_path, pdf_of):
    bomb = zlib.compress(b"0 " * 30_000_000)
    (tmp_path / "a.pdf").write_bytes(pdf_of(bomb, b"/Filter /FlateDecode"))
    limits = Limits(parser_memory_bytes=300 << 20, pdf_seconds=30)
    documents, summary = _read(tmp_path, ReadOptions(limits=limits))
    assert documents == {}
    assert summary.skipped_count == 1


def test_pdf_over_the_size_limit_is_not_opened(tmp_path, pdf_of):
    (tmp_path / "a.pdf").write_bytes(pdf_of(_TEXT))
    _, summary = _read(tmp_path, ReadOptions(limits=Limits(pdf_bytes=100)))
    assert "more than the 100 read of a PDF" in summary.skipped[0].reason


def test_single_hostile_file_is_one_error(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4\n")
    with pytest.raises(UnreadableFileError, match=r"a\.pdf: cannot be parsed") as caught:
        _read(tmp_path / "a.pdf")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "deed",
    [
        "open('{file}', 'w')",
        "open('{file}', 'ab')",
        "__import__('pathlib').Path('{file}').write_text('x')",
        "__import__('os').open('{file}', 0o101)",
        "__import__('os').remove('{there}')",
        "__import__('socket').socket()",
        "__import__('socket').getaddrinfo('localhost', 80)",
        "__import__('subprocess').run(['true'])",
        "__import__('os').system('true')",
    ],
)
def test_confined_process_can_neither_write_nor_connect_nor_start_processes(tmp_path, deed):
    worker = Path(parsing_worker.__file__)
    there = tmp_path / "there"
    there.write_text("kept")
    deed = deed.format(file=tmp_path / "file", there=there)
    program = (
        f"import runpy, socket, subprocess, pathlib; worker = runpy.run_path({str(worker)!r});"
        f"worker['confine'](1 << 32)\ntry:\n    {deed}\nexcept PermissionError:\n    print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr
    assert not (tmp_path / "file").exists()
    assert there.read_text() == "kept"


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal here")
def test_process_that_died_is_started_anew(tmp_path):
    confinement = Confinement()
    ask = partial(
        confinement.parse,
        {"kind": "html", "html": "<p>a"},
        seconds=20.0,
        memory_bytes=1 << 31,
        where="a.html",
    )
    try:
        assert ask()["text"] == "a"
        confinement._process.kill()
        confinement._process.wait()
        assert ask()["text"] == "a"
        # One that dies while it parses costs that file, and no other.
        os.kill(confinement._process.pid, signal.SIGSTOP)
        threading.Timer(0.2, confinement._process.kill).start()
        with pytest.raises(UnreadableFileError, match=r"a\.html: its parser crashed"):
            ask()
        assert ask()["text"] == "a"
    finally:
        confinement.close()


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on memory are kept on Linux")
def test_too_little_memory_for_the_parsers_says_so(tmp_path):
    _page(tmp_path / "a.html", "<p>x")
    _, summary = _read(tmp_path, ReadOptions(limits=Limits(parser_memory_bytes=1 << 20)))
    assert summary.skipped_count == 1


def test_worker_answers_every_request_with_one_line():
    requests = [
        {"kind": "html", "html": "<p>a"},
        {"kind": "nothing"},
        {},
        {"kind": "pdf", "path": "/none", "pages": 1},
    ]
    done = subprocess.run(
        [sys.executable, "-P", "-B", parsing_worker.__file__, str(1 << 31)],
        input="".join(json.dumps(request) + "\n" for request in requests) + "no json\n",
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0] == {"ready": True}
    assert answers[1] == {"title": "", "text": "a", "notes": []}
    assert all("cannot be parsed" in answer["error"] for answer in answers[2:])
    assert len(answers) == 6
