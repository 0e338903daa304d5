"""What runs in the process that parses HTML and PDF: started by `confinement`, never imported by it.

Says `{"ready": true}`, then answers each line of JSON from standard input with one: `{"title", "text",
"notes"}` or `{"error"}`. It can write no file, open no connection, start no process.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Elements whose content nobody reads.
_UNREAD = {"script", "style", "template", "noscript", "svg", "head", "iframe", "object", "canvas", "math"}

#: Elements that begin and end a line.
_BLOCKS = {
    "address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr",
    "li", "main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot",
    "th", "thead", "tr", "ul",
}  # fmt: skip

_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n(?=[a-z])")
_FORBIDDEN = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "ctypes.",
)
_CHANGING = {
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
}


def parse_html(request: dict[str, Any]) -> dict[str, Any]:
    """Return title and text of an HTML page, its blocks as lines."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(request["html"])
    head = tree.css_first("title")
    heading = tree.css_first("h1")
    title = _one_line(head.text() if head is not None else "")
    if not title and heading is not None:
        title = _one_line(heading.text())
    body = tree.body
    text = "" if body is None else "".join(_visible(body))
    lines = (_SPACES.sub(" ", line).strip() for line in text.split("\n"))
    return {"title": title, "text": "\n".join(line for line in lines if line), "notes": []}


def _visible(body: Any) -> Iterator[str]:
    """Yield what is read, in order, walking without recursion: pages nest as deep as they like."""
    node = body.child
    while node is not None:
        tag = node.tag
        if tag == "-text":
            yield node.text_content.replace("\n", " ")
        elif tag in _BLOCKS:
            yield "\n"
        child = None if tag in _UNREAD else node.child
        if child is not None:
            node = child
            continue
        while node is not None:
            if node.tag in _BLOCKS:
                yield "\n"
            following = node.next
            if following is not None:
                node = following
                break
            node = node.parent
            if node is None or node.mem_id == body.mem_id:
                return


def parse_pdf(request: dict[str, Any]) -> dict[str, Any]:
    """Return title and text of a PDF file, page by page."""
    import pypdf

    with Path(request["path"]).open("rb") as stream:
        reader = pypdf.PdfReader(stream, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "encrypted PDF"}
        pages: list[str] = []
        broken = 0
        total = len(reader.pages)
        for number in range(min(total, request["pages"])):
            try:
                pages.append(reader.pages[number].extract_text().strip())
            except MemoryError:
                raise
            except Exception:  # whatever pypdf meets in a broken page
                broken += 1
        text = _HYPHENATED.sub("", "\n\n".join(filter(None, pages)))
        try:
            title = str(reader.metadata.title or "") if reader.metadata else ""
        except Exception:  # a broken information dictionary costs the title only
            title = ""
    if not text:
        return {"error": "PDF without text (scanned pages?)" if not broken else "PDF whose pages cannot be read"}
    notes = [f"{broken} of its {total} pages cannot be read"] if broken else []
    if total > request["pages"]:
        notes.append(f"only the first {request['pages']} of its {total} pages are read")
    return {"title": _one_line(title), "text": text, "notes": notes}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def confine(memory_bytes: int) -> None:
    """Give up, for good, what parsing does not need."""
    try:
        import resource
    except ImportError:  # Windows has no such limits; the audit hook and the deadline remain.
        resource = None  # type: ignore[assignment]
    if resource is not None:
        for kind, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_FSIZE, 0)):
            try:
                resource.setrlimit(kind, (most, most))
            except (ValueError, OSError):
                continue
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        mode, flags = arguments[1], arguments[2]
        # 3 is O_WRONLY | O_RDWR on every system that Python runs on.
        writes = any(sign in mode for sign in "wax+") if isinstance(mode, str) else bool(flags & 3)
        if writes:
            message = "a document may not open files for writing"
            raise PermissionError(message)
    elif event in _CHANGING or event.startswith(_FORBIDDEN):
        message = f"a document may not do this: {event}"
        raise PermissionError(message)


#: Kind of request -> parser.
PARSERS = {"html": parse_html, "pdf": parse_pdf}


def main() -> None:
    """Answer requests until standard input ends."""
    sys.setrecursionlimit(2000)
    # Both parsers before the confinement: importing may load shared libraries.
    import pypdf  # noqa: F401
    import selectolax.lexbor  # noqa: F401

    confine(int(sys.argv[1]))
    _answer({"ready": True})
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
            answer = PARSERS[request["kind"]](request)
        except MemoryError:
            answer = {"error": "needs more memory than a document may take"}
        except RecursionError:
            answer = {"error": "nested too deeply"}
        except Exception as error:  # parsers raise anything on hostile input
            answer = {"error": f"cannot be parsed ({type(error).__name__}: {str(error)[:100]})"}
        _answer(answer)


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
