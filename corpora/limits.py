"""How much a file may ask of us: one place for every bound that protects memory and time.

Files come from anywhere. A line that never ends, an archive that inflates a thousandfold, a page nested a
million deep or a PDF that loops must cost a bounded amount and end in one counted line of the summary.
"""

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one file may take; sizes in bytes, times in seconds.

    Attributes
    ----------
    record_bytes
        One line of `.jsonl`, one CSV record, one TREC document, one Parquet row's text.
    json_bytes
        A `.json` file, which is parsed whole (a `.jsonl` file has no bound: it is streamed).
    text_bytes
        A `.txt`, `.md` or `.rst` file.
    html_bytes, html_seconds
        A `.html` file, and the wall time of its parsing: a parser of nested markup can take quadratic time.
    pdf_bytes, pdf_pages, pdf_seconds
        A `.pdf` file: its size, the pages read, the wall time of its parsing.
    parser_memory_bytes
        Address space of the process that parses HTML and PDF, where the system has such limits.
    inflated_bytes, inflated_ratio
        A `.gz` file may grow past `inflated_bytes` only while it has grown by less than the ratio; what a
        Parquet file declares is held to the same.
    header_bytes
        What is looked at to tell a format, an encoding or a binary file.
    """

    record_bytes: int = 256 * MEBIBYTE
    json_bytes: int = 512 * MEBIBYTE
    text_bytes: int = 64 * MEBIBYTE
    html_bytes: int = 32 * MEBIBYTE
    html_seconds: float = 10.0
    pdf_bytes: int = 256 * MEBIBYTE
    pdf_pages: int = 5000
    pdf_seconds: float = 60.0
    parser_memory_bytes: int = 2048 * MEBIBYTE
    inflated_bytes: int = 64 * MEBIBYTE
    inflated_ratio: float = 200.0
    header_bytes: int = 8192


DEFAULT_LIMITS = Limits()
