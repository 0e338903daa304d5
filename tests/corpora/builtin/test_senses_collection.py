"""The senses collection keeps what its README promises; the files are read directly, not by our readers."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest
from gensim.parsing.porter import PorterStemmer

import corpora.builtin

FOLDER = Path(corpora.builtin.__file__).parent / "senses"

# Words that carry no topic; sharing one of these is not sharing a word.
FUNCTION_WORD_LIST = """
a about above across after again against all along also an and another any anyone are around as at away
back be because been before behind being below between both but by can could did do does doing down
during each either else every few for from further get gets getting got had has have having he her here
hers him his how i if in into is it its itself just like many may me might more most much must my myself
near neither no nobody nor not nothing of off on once one only onto or other our out over own per same
shall she should so some such than that the their them then there these they this those through to too
toward under until up upon us very was we were what when where which while who whom whose why will with
within without would you your yours
"""
FUNCTION_WORDS = frozenset(FUNCTION_WORD_LIST.split())
# Inflections that the stemmer does not lead back to the word.
INFLECTIONS = {"mice": "mouse", "lighter": "light", "lightest": "light"}

STEMMER = PorterStemmer()


def stem(token: str) -> str:
    return STEMMER.stem(INFLECTIONS.get(token, token))


def tokens(text: str) -> list[str]:
    """Lower-cased words; a trailing 's, 't, 've and the like is dropped."""
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))
    return [re.sub(r"'(s|t|ve|re|ll|d|m)$", "", word) for word in words]


def content_stems(text: str, word: str = "") -> set[str]:
    stems = {stem(token) for token in tokens(text) if token not in FUNCTION_WORDS}
    return stems - {stem(word)}


def contains(text: str, word: str) -> bool:
    return stem(word) in {stem(token) for token in tokens(text)}


def searchable(document: dict) -> str:
    return f"{document['title']} {document['text']}"


def sense_of(record: dict) -> tuple[str, str]:
    return record["metadata"]["word"], record["metadata"]["sense"]


def read_jsonl(name: str) -> list[dict]:
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def documents() -> list[dict]:
    return read_jsonl("corpus.jsonl")


@pytest.fixture(scope="module")
def queries() -> list[dict]:
    return read_jsonl("queries.jsonl")


@pytest.fixture(scope="module")
def qrels() -> dict[str, dict[str, int]]:
    header, *lines = (FOLDER / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    rows = [line.split("\t") for line in lines]
    assert len({(query_id, doc_id) for query_id, doc_id, _ in rows}) == len(rows)
    judged: dict[str, dict[str, int]] = defaultdict(dict)
    for query_id, doc_id, score in rows:
        judged[query_id][doc_id] = int(score)
    return dict(judged)


@pytest.fixture(scope="module")
def by_sense(documents) -> dict[tuple[str, str], list[dict]]:
    groups = defaultdict(list)
    for document in documents:
        groups[sense_of(document)].append(document)
    return dict(groups)


def test_the_stemmer_and_the_marks_work_on_a_worked_example():
    assert tokens("The otter's banks weren't High-Sided") == [
        "the",
        "otter",
        "banks",
        "weren",
        "high",
        "sided",
    ]
    assert content_stems("The banks were flooding", "bank") == {"flood"}
    assert contains("Three mice", "mouse")
    assert contains("lighter than air", "light")
    assert not contains("embankment", "bank")


def test_counts_are_those_of_the_readme(documents, queries, by_sense):
    words = {word for word, _ in by_sense}
    unshared = sum(query["metadata"]["no_shared_word"] for query in queries)
    titled = sum(bool(document["title"]) for document in documents)
    counts = (len(words), len(by_sense), len(documents), titled, len(queries), unshared)
    assert counts == (22, 52, 270, 95, 156, 103)


def test_every_word_has_two_or_three_senses(by_sense):
    assert set(Counter(word for word, _ in by_sense).values()) == {2, 3}


def test_every_sense_has_five_passages_or_more_and_two_queries_or_more(by_sense, queries):
    assert min(len(passages) for passages in by_sense.values()) >= 5
    asked = Counter(sense_of(query) for query in queries)
    assert asked.keys() == by_sense.keys()
    assert min(asked.values()) >= 2


def test_ids_are_unique_and_name_their_word_and_sense(documents, queries):
    ids = [record["_id"] for record in [*documents, *queries]]
    assert len(set(ids)) == len(ids)
    for document in documents:
        word, sense = sense_of(document)
        assert re.fullmatch(rf"{word}-{sense}-\d\d", document["_id"])
    for query in queries:
        word, sense = sense_of(query)
        assert re.fullmatch(rf"q-{word}-{sense}-\d", query["_id"])


def test_records_have_the_beir_fields_and_our_metadata(documents, queries):
    for document in documents:
        assert list(document) == ["_id", "title", "text", "metadata"]
        assert list(document["metadata"]) == ["word", "sense"]
    for query in queries:
        assert list(query) == ["_id", "text", "metadata"]
        assert list(query["metadata"]) == ["word", "sense", "no_shared_word", "target"]


def test_texts_are_unique_and_not_near_duplicates(documents, queries):
    assert len({document["text"] for document in documents}) == len(documents)
    assert len({query["text"] for query in queries}) == len(queries)
    bags = [(document["_id"], content_stems(document["text"])) for document in documents]
    overlaps = {(a, b): len(x & y) / len(x | y) for (a, x), (b, y) in combinations(bags, 2)}
    closest = max(overlaps, key=overlaps.__getitem__)
    assert overlaps[closest] < 0.25, closest


def test_texts_are_tidy(documents, queries):
    for text in [field for d in documents for field in (d["title"], d["text"])] + [q["text"] for q in queries]:
        assert text == " ".join(text.split())
    for document in documents:
        assert document["text"][-1] in '.?!"', document["_id"]


def test_every_passage_contains_its_word_and_is_short(documents):
    for document in documents:
        assert contains(document["text"], document["metadata"]["word"]), document["_id"]
        assert 15 <= len(document["text"].split()) <= 60, document["_id"]


def test_every_query_contains_its_word_and_is_short(queries):
    for query in queries:
        assert contains(query["text"], query["metadata"]["word"]), query["_id"]
        assert 3 <= len(query["text"].split()) <= 12, query["_id"]


def test_no_query_holds_another_ambiguous_word(queries, by_sense):
    words = {word for word, _ in by_sense}
    for query in queries:
        others = {word for word in words if contains(query["text"], word)} - {query["metadata"]["word"]}
        assert not others, query["_id"]


def test_no_shared_word_marks_are_true(queries, by_sense):
    wrong = {}
    for query in queries:
        word, _ = sense_of(query)
        found = set().union(*(content_stems(searchable(d), word) for d in by_sense[sense_of(query)]))
        shared = content_stems(query["text"], word) & found
        if query["metadata"]["no_shared_word"] == bool(shared):
            wrong[query["_id"]] = shared
    assert not wrong


def test_the_context_of_every_query_has_a_content_word(queries):
    for query in queries:
        assert content_stems(query["text"], query["metadata"]["word"]), query["_id"]


def test_qrels_grade_the_sense_one_and_the_target_two(queries, by_sense, qrels):
    expected = {
        query["_id"]: {
            document["_id"]: 2 if document["_id"] == query["metadata"]["target"] else 1
            for document in by_sense[sense_of(query)]
        }
        for query in queries
    }
    assert qrels == expected
    assert all(2 in grades.values() for grades in qrels.values())
