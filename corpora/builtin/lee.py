"""The Lee collection: 50 news texts whose similarity people judged, pair by pair.

M. D. Lee, B. Pincombe and M. Welsh, "An empirical evaluation of models of text document similarity",
CogSci 2005. The texts come with gensim's test data, which is found by path: gensim itself is not imported.
Each of the 50 texts is a document and a query; a query's own text is left out of its answers. The 300
background texts are for training and statistics only.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from corpora.collection import Collection
from corpora.document import Document
from corpora.errors import CollectionNotFoundError, UnreadableFileError
from corpora.judgements import Query
from corpora.read_log import ReadLog

_TEXTS = "lee.cor"
_BACKGROUND = "lee_background.cor"
_SIMILARITIES = "similarities0-1.txt"


def grade(similarity: float) -> int:
    """Return the grade of a mean human similarity in [0.2, 1].

    People rated pairs from 1 (highly unrelated) to 5 (highly related); the file holds means divided by 5.
    The mean rating, rounded half up, gives back a point of that scale: 5 is grade 3, 4 is grade 2, 3 (the
    middle of the scale) is grade 1, and what lies below the middle is not relevant. No retriever had a say.
    """
    rating = int(similarity * 5 + 0.5 + 1e-6)
    return max(0, rating - 2)


def open_lee() -> Collection:
    """Open the Lee collection.

    Raises
    ------
    CollectionNotFoundError
        If gensim's test data is not installed.
    """
    folder = _data_folder()
    texts = _read_texts(folder / _TEXTS)
    similarities = _read_similarities(folder / _SIMILARITIES, len(texts))
    ids = [_text_id(number) for number in range(len(texts))]
    qrels = {
        ids[row]: {
            ids[column]: grade(similarities[min(row, column)][max(row, column)])
            for column in range(len(ids))
            if column != row
        }
        for row in range(len(ids))
    }
    return Collection(
        name="lee",
        source="built-in",
        read=partial(_documents, folder / _TEXTS, "lee"),
        queries={query_id: Query(query_id, text) for query_id, text in zip(ids, texts, strict=True)},
        qrels={"test": qrels},
        read_background=partial(_documents, folder / _BACKGROUND, "background"),
        exclude_same_id=True,
        notes=("queries are documents here: a query's own text is left out of its answers",),
    )


def _data_folder() -> Path:
    spec = find_spec("gensim")
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        folder = Path(place) / "test" / "test_data"
        if (folder / _TEXTS).is_file():
            return folder
    message = "the lee collection comes with gensim's test data, which is not installed; pip install gensim"
    raise CollectionNotFoundError(message)


def _read_texts(path: Path) -> list[str]:
    return path.read_text(encoding="latin-1").strip("\n").split("\n")


def _documents(path: Path, kind: str, log: ReadLog) -> Iterator[Document]:
    log.files = 1
    for number, text in enumerate(_read_texts(path)):
        yield Document(_text_id(number, kind), text, source=f"{path.name}:{number + 1}")


def _text_id(number: int, kind: str = "lee") -> str:
    return f"{kind}-{number + 1:0{2 if kind == 'lee' else 3}d}"


def _read_similarities(path: Path, texts: int) -> list[list[float]]:
    rows = [[float(value) for value in line.split()] for line in path.read_text().splitlines() if line.strip()]
    if len(rows) != texts or any(len(row) != texts for row in rows):
        message = f"{path}: expected a {texts} by {texts} matrix of similarities"
        raise UnreadableFileError(message)
    return rows
