"""What is peculiar about a query: marks that may explain why retrievers disagree on it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

#: measure -> query id -> score
Scores = Mapping[str, Mapping[str, float]]

UNKNOWN_WORDS = "unknown words"
NO_SHARED_WORD = "no shared word"
EXACT_IDENTIFIER = "exact identifier"
BEYOND_WINDOW = "text longer than window"

_WORD = re.compile(r"[^\W_]+(?:['’.\-+&/_][^\W_]+)*\+*")
_MARKED = re.compile(r"[-_/.&+]")
#: Words so common that sharing them says nothing.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """a an and are as at be been by can do does for from had has have how i if in into is it its may more no not of
        on or our over so such than that the their there these they this to under was we were what when where which who
        why will with would you""",
    )
)


def words(text: str) -> list[str]:
    """Return the words of a text, lower case; what joins letters or digits stays in: `f-16`, `u.s`, `don't`."""
    return [word.casefold() for word in _WORD.findall(text)]


def has_identifier(text: str) -> bool:
    """Return whether a text holds a name that is right or wrong to the letter: `ISO-8859`, `p53`, `HTTP`, `C++`.

    That is a word with letters and digits, with a sign between or behind capitals or digits, or of two or more
    capitals in a text that has small letters too.
    """
    mixed_case = text != text.upper()
    for word in _WORD.findall(text):
        letters, digits = any(c.isalpha() for c in word), any(c.isdigit() for c in word)
        capitals = sum(c.isupper() for c in word) >= 2 and word == word.upper()
        if (letters and digits) or (capitals and mixed_case) or (letters and _MARKED.search(word) and capitals):
            return True
        if word.endswith("+"):
            return True
    return False


def query_marks(
    text: str,
    relevant: Iterable[str] = (),
    *,
    unknown: Collection[str] = (),
    beyond_window: bool = False,
) -> list[str]:
    """Return the marks of a query.

    Parameters
    ----------
    text
        The query.
    relevant
        The texts of its relevant documents, where they are at hand: a query with not one word (of three letters
        or more, common ones apart, compared by their first five letters) in any of them is marked.
    unknown
        Its words that the table of static vectors lacks.
    beyond_window
        Whether a relevant document is longer than the contextual encoder's window.
    """
    marks = [UNKNOWN_WORDS] if unknown else []
    texts = [set(_stems(document)) for document in relevant]
    asked = set(_stems(text))
    if asked and texts and not any(asked & found for found in texts):
        marks.append(NO_SHARED_WORD)
    if has_identifier(text):
        marks.append(EXACT_IDENTIFIER)
    if beyond_window:
        marks.append(BEYOND_WINDOW)
    return marks


def disagreement(scores: Mapping[str, Scores], measure: str) -> list[tuple[str, float]]:
    """Return queries by how far rows lie apart on them, farthest first, equal ones by id.

    Each row's scores are taken less its mean: a row that is weak everywhere does not disagree everywhere.
    """
    rows = [per_query[measure] for per_query in scores.values()]
    means = [float(np.mean(list(row.values()))) for row in rows]
    spreads = {}
    for query in rows[0]:
        beyond = [row[query] - mean for row, mean in zip(rows, means, strict=True)]
        spreads[query] = max(beyond) - min(beyond)
    return sorted(spreads.items(), key=lambda item: (-round(item[1], 9), item[0]))


def means_by_mark(
    scores: Mapping[str, Scores], measure: str, marks: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, dict[str, float]]]:
    """Return for each mark, and for none (`""`), how many queries bear it and each row's mean over those."""
    queries = list(next(iter(scores.values()))[measure])
    bearers: dict[str, list[str]] = {}
    for query in queries:
        for mark in marks.get(query, ()) or ("",):
            bearers.setdefault(mark, []).append(query)
    return {
        mark: (
            len(ids),
            {row: float(np.mean([per_query[measure][q] for q in ids])) for row, per_query in scores.items()},
        )
        for mark, ids in sorted(bearers.items(), key=lambda item: (item[0] == "", -len(item[1])))
    }


def _stems(text: str) -> list[str]:
    return [word[:5] for word in words(text) if len(word) > 2 and word not in _COMMON]
