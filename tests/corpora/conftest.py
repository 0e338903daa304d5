"""Files made by hand for the readers' tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

MakePdf = Callable[[Path, str, str], None]


def pdf_bytes(objects: list[bytes], trailer: bytes) -> bytes:
    """Return a PDF file of these objects (numbered from 1) with a correct cross-reference table."""
    data = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return data + b"trailer\n<< /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, start)


@pytest.fixture
def make_pdf() -> MakePdf:
    """Return a function that writes a PDF of one page: path, title, text of Latin-1 lines."""

    def make(path: Path, title: str, text: str) -> None:
        def literal(words: str) -> bytes:
            escaped = words.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
            return b"(" + escaped.encode("latin-1") + b")"

        lines = b" T* ".join(literal(line) + b" Tj" for line in text.split("\n"))
        stream = b"BT /F1 12 Tf 14 TL 72 720 Td " + lines + b" ET"
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            (
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
                b"/Resources << /Font << /F1 5 0 R >> >> >>"
            ),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Title " + literal(title) + b" >>",
        ]
        path.write_bytes(pdf_bytes(objects, b"/Root 1 0 R /Info 6 0 R"))

    return make


@pytest.fixture
def pdf_of() -> Callable[..., bytes]:
    """Return a function that gives a PDF all of whose pages draw one stream."""

    def pdf_of(stream, extra=b"", pages=1):
        kids = b" ".join(b"%d 0 R" % (4 + page) for page in range(pages))
        page = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 3 0 R "
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % pages,
            b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), extra, stream),
            *[page] * pages,
        ]
        return pdf_bytes(objects, b"/Root 1 0 R")

    return pdf_of
