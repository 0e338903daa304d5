"""Pairs with scores: every form that is read, and a line for every one that is not."""

import json

import pytest

from search.diagnostics.similarity_files import TextPair, distinct_texts, read_text_pairs
from search.errors import DiagnosisError

PAIRS = [TextPair('A "cat" sits.', "A dog, sits.", 2.5), TextPair("river", "water", 4.0)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", 'score\tsentence1\tsentence2\n2.5\tA "cat" sits.\tA dog, sits.\n\n4\triver\twater\n'),
        (
            "a.tsv",
            '\ufeffsentence1\tid\tSentence2\tscore\r\nA "cat" sits.\t7\tA dog, sits.\t2.5\r\nriver\t8\twater\t4\r\n',
        ),
        ("a.tsv", '# a comment\n# another\nA "cat" sits.\tA dog, sits.\t2.5\nriver\twater\t4\n'),
        ("a.csv", '"A ""cat"" sits.","A dog, sits.",2.5\nriver,water,4.0\n'),
        ("a.csv", 'Word 1,Word 2,Human (mean)\n"A ""cat"" sits.","A dog, sits.",2.5\nriver,water,4.0\n'),
        (
            "a.jsonl",
            "\n".join(
                json.dumps(record)
                for record in (
                    {"sentence1": 'A "cat" sits.', "sentence2": "A dog, sits.", "score": 2.5},
                    {"text1": "river", "text2": "water", "label": "4"},
                )
            ),
        ),
    ],
)
def test_every_form_gives_the_same_pairs(tmp_path, name, content):
    (tmp_path / name).write_text(content, encoding="utf-8", newline="")
    assert read_text_pairs(tmp_path / name) == PAIRS


def test_the_published_sets_are_read_by_name():
    assert read_text_pairs("wordsim353")[1] == ("tiger", "cat", 7.35)
    assert len(read_text_pairs("simlex999")) == 999


def test_the_sts_benchmark_is_read(shared_data):
    found = read_text_pairs(shared_data / "stsb" / "test.tsv")
    assert len(found) == 1379
    assert found[0] == ("A girl is styling her hair.", "A girl is brushing her hair.", 2.5)
    assert len(distinct_texts(found)) == 2551


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tsv", "score\tsentence1\tsentence2\n1\ta\tb\nhigh\ta\tb\n", "line 3 has 'high' for a score"),
        ("a.tsv", "score\tsentence1\tsentence2\n\n1\ta\n", "line 3 has 2 columns, expected 3"),
        ("a.tsv", "1\ta\tb\nnan\ta\tb\n", "line 2 has 'nan' for a score"),
        ("a.tsv", "a\tb\tc\n", "line 1 is 'a; b; c': neither column names"),
        ("a.csv", "a,b,1\n\n\na,b\n", "line 4 has 2 columns"),
        ("a.csv", 'a,b,1\n"a,b,1\n', "line 2 is no row of a table"),
        ("a.html", "<!DOCTYPE html>\n<html></html>", "line 1 is '<!DOCTYPE html>'"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n{"sentence1": "a"}', "line 2 is no JSON object"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "score": 1}\n{', "line 2 is no JSON object"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": 3, "score": 1}', "line 1 holds 'a', '3' and '1'"),
        ("a.jsonl", '{"sentence1": "a", "sentence2": "b", "score": true}', "line 1 holds 'a', 'b' and 'True'"),
        ("a.tsv", "", "holds no pair"),
        ("a.tsv", "# only a comment\n", "holds no pair"),
        ("a.tsv", "score\tsentence1\tsentence2\n", "holds no pair"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DiagnosisError, match=said) as caught:
        read_text_pairs(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_read_is_said_so(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"\xff\xfe\x00")
    for name in (tmp_path / "a.tsv", tmp_path / "absent.tsv", tmp_path, "wordsim"):
        with pytest.raises(DiagnosisError, match="cannot be read"):
            read_text_pairs(name)
