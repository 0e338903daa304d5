"""Markdown and reStructuredText to plain text: what a reader sees, without the signs.

Light on purpose: no renderer, a few passes over the lines. Every pattern is bounded, so that no input takes
more than linear time.
"""

import re
from collections.abc import Callable
from typing import NamedTuple


class Titled(NamedTuple):
    """A text and its title (empty if it has none)."""

    title: str
    text: str


_FRONT_MATTER_LINES = 200
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_ATX_HEADING = re.compile(r"\s{0,3}#{1,6}(?:[ \t]+(.*?))?[ \t]*#*[ \t]*$")
_SETEXT = re.compile(r"\s{0,3}(?:={2,}|-{2,})[ \t]*$")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t:|-]{3,}$")
_LINK_TARGET = re.compile(r"\s{0,3}\[[^\[\]]{1,200}\]:\s+\S")
_LINE_MARK = re.compile(r"[ \t]*(?:>[ \t]?){0,5}[ \t]*(?:[-*+][ \t]+|\d{1,4}[.)][ \t]+)?")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\](?:\([^()\n]{0,1000}\)|\[[^\[\]\n]{0,200}\])")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,500}>|<!--[^\n]{0,500}-->")
_EMPHASIS = re.compile(r"\*{1,3}|_{2,3}|`{1,3}|~~")


def from_markdown(source: str) -> Titled:
    """Return the title (of the front matter, or the first heading) and the text of a Markdown file."""
    lines = source.replace("\r\n", "\n").split("\n")
    title, lines = _front_matter(lines)
    kept: list[str] = []
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            kept.append(line)
        elif heading := _ATX_HEADING.match(line):
            words = _inline_markdown(heading[1] or "")
            if title or not words:
                kept.append(words)
            else:
                title = words
        elif _SETEXT.match(line) and kept and kept[-1].strip():
            if not title and line.lstrip().startswith("="):
                title = kept.pop()
        elif not (_SETEXT.match(line) or _TABLE_RULE.match(line) or _LINK_TARGET.match(line)):
            kept.append(_inline_markdown(line[_LINE_MARK.match(line).end() :]))  # type: ignore[union-attr]
    return Titled(title.strip(), _joined(kept))


def _front_matter(lines: list[str]) -> tuple[str, list[str]]:
    """Return the title that a block between `---` lines at the head names, and the lines after it."""
    if not lines or lines[0].strip() != "---":
        return "", lines
    for number, line in enumerate(lines[1:_FRONT_MATTER_LINES], 1):
        if line.strip() in {"---", "..."}:
            named = [entry for entry in lines[1:number] if entry.lower().startswith("title:")]
            title = named[0].partition(":")[2].strip().strip("\"'") if named else ""
            return title, lines[number + 1 :]
    return "", lines


def _inline_markdown(line: str) -> str:
    line = _TAG.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", line)))
    return _EMPHASIS.sub("", line.replace("|", " ")).strip()


_RULE = re.compile(r"([=\-~^\"'#*+.:_`<>])\1{1,}[ \t]*$")
_DIRECTIVE = re.compile(r"[ \t]*\.\.[ \t]+[\w.:+-]{1,80}::[ \t]*(.*)$")
_COMMENT = re.compile(r"[ \t]*\.\.(?:[ \t]|$)")
_OPTION = re.compile(r"[ \t]+:[\w-]{1,60}:")
_ROLE = re.compile(r":[\w.:+-]{1,60}:`")
_EXPLICIT_TARGET = re.compile(r"[ \t]{0,3}<[^<>`\n]{1,500}>(`_{0,2})")
_REFERENCE = re.compile(r"`_{1,2}(?!\w)|``?|\*{1,2}|\|(?=\w)|(?<=\w)\|_?")


def from_rest(source: str) -> Titled:
    """Return the title (the first heading) and the text of a reStructuredText file."""
    lines = source.replace("\r\n", "\n").split("\n")
    title = ""
    kept: list[str] = []
    for line in lines:
        if _RULE.match(line):
            if not title and kept and kept[-1].strip() and not any(entry.strip() for entry in kept[:-1]):
                title = kept.pop()
        elif directive := _DIRECTIVE.match(line):
            kept.append(_inline_rest(directive[1]))
        elif not (_COMMENT.match(line) or _OPTION.match(line)):
            kept.append(_inline_rest(line))
    return Titled(title.strip(), _joined(kept))


def _inline_rest(line: str) -> str:
    return _REFERENCE.sub("", _EXPLICIT_TARGET.sub(r"\1", _ROLE.sub("`", line))).replace("::", ":").strip()


def _joined(lines: list[str]) -> str:
    """Join lines, several empty ones in a row as one."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or (kept and kept[-1]):
            kept.append(line.rstrip())
    return "\n".join(kept).strip()


#: File suffix -> what turns its source into title and text.
MARKUP: dict[str, Callable[[str], Titled]] = {
    ".md": from_markdown,
    ".markdown": from_markdown,
    ".rst": from_rest,
}
