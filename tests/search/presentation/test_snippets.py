"""The part of a passage that is shown: short, whole words, and where the words that decided stand."""

import string

from hypothesis import given
from hypothesis import strategies as st

from search.presentation.snippets import snippet, word_spans

TEXT = "The bank closed. Later the river rose over its banks."


def test_words_are_found_whole_and_in_any_case() -> None:
    assert [TEXT[start:end] for start, end in word_spans(TEXT, ["bank", "RIVER"])] == ["bank", "river"]
    assert word_spans("C++ or AT&T", ["c++"]) == [(0, 3)]
    assert word_spans("u.s.-based", ["u.s"]) == [(0, 3)]
    assert word_spans("我喜欢机器学习", ["机器", "学习"]) == [(3, 5), (5, 7)]
    assert word_spans(TEXT, []) == []


def test_the_window_lies_around_the_words() -> None:
    assert snippet(TEXT, ["river"], 24) == "…the river rose over…"
    assert snippet(TEXT, ["banks"], 24) == "…rose over its banks."
    assert snippet(TEXT, ["bank"], 24) == "The bank closed. Later…"
    assert snippet(TEXT, [], 24) == snippet(TEXT, ["zebra"], 24) == "The bank closed. Later…"
    assert snippet(TEXT, ["river"], 100) == TEXT


def test_the_window_with_more_of_the_words_wins_and_earlier_words_count_more() -> None:
    text = "alpha " + "x " * 60 + "beta gamma " + "x " * 60
    assert "beta gamma" in snippet(text, ["beta", "gamma", "alpha"], 60)
    assert snippet(text, ["alpha", "beta", "gamma"], 60).startswith("alpha")


def test_blanks_and_breaks_become_one() -> None:
    assert snippet("a \n\n b\tc") == "a b c"


@given(
    st.lists(st.text(string.ascii_lowercase + "é机", min_size=1, max_size=12), max_size=60),
    st.lists(st.integers(0, 59), max_size=4),
    st.integers(20, 80),
)
def test_a_snippet_is_a_part_of_the_text_and_no_longer_than_asked(
    words: list[str], chosen: list[int], length: int
) -> None:
    text = " ".join(words)
    wanted = [words[place] for place in chosen if place < len(words)]
    found = snippet(text, wanted, length)
    assert len(found) <= length
    assert found.strip("…") in text
    if wanted and len(wanted[0]) < length - 12:
        assert wanted[0].casefold() in found.casefold()
