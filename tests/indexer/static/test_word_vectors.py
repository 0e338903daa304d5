import gzip
import hashlib
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from gensim.models.fasttext import load_facebook_vectors
from gensim.test.utils import datapath

from corpora.progress import Silent
from indexer.errors import ModelError, ModelNotFoundError, UntrustedPickleError
from indexer.static.tokenizer import words
from indexer.static.word_vectors import (
    Word2VecTraining,
    keyed_vectors,
    load_word_vectors,
    train_word2vec,
)

GLOVE = "the 0.5 -1 2e-1\nriver 1 2 3\n. . . 0.1 0.2 0.3\nbank 4 5 6\n"
EXPECTED = [[0.5, -1, 0.2], [1, 2, 3], [0.1, 0.2, 0.3], [4, 5, 6]]


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("header", ["", "4 3\n", "\ufeff4 3\r\n"])
@pytest.mark.parametrize("zipped", [False, True])
def test_text_with_and_without_header_reads_the_same(tmp_path, header, zipped):
    content = (header + GLOVE).encode()
    path = written(tmp_path, "v.txt.gz" if zipped else "v.txt", gzip.compress(content) if zipped else content)
    found = load_word_vectors(path)
    assert list(found.words) == ["the", "river", ". . .", "bank"]
    np.testing.assert_allclose(found.matrix, EXPECTED, rtol=1e-6)
    assert load_word_vectors(path, limit=2).words == ["the", "river"]


def test_text_equals_gensims_reading(tmp_path):
    content = Path(datapath("test_glove.txt")).read_bytes()
    # with a header: gensim leaves a file open when it has to look for the size itself
    headed = written(tmp_path, "v.txt", b"%d 50\n" % len(content.splitlines()) + content)
    reference = KeyedVectors.load_word2vec_format(headed)
    found = load_word_vectors(datapath("test_glove.txt"))
    assert list(found.words) == reference.index_to_key
    np.testing.assert_allclose(found.matrix, reference.vectors, rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("<!DOCTYPE html>\n<html>\n<body>Not found</body>", r"line 1 .*HTML page"),
        ("hello world\nthis is prose\n", "line 1 .*no numbers"),
        ("a 1 2 3\nb 1 2\nc 1 2 3\n", "line 2 has 2 fields after the word, expected 3"),
        ("3 3\na 1 2 3\n\nb 1 2\n", "line 4 has 2 fields"),
        ("a 1 2 3\nb 1 x 3\nc 1 2 3\n", "line 2 holds 'x', expected a number"),
        ("a 1 2 3\nb 1 nan 3\n", "line 2 holds a number that is not finite"),
        ("a 1 2 3\nb 1 1e99 3\n", "line 2 holds a number that is not finite"),
        ("3 3\na 1 2 3\nb 1 2 3\n", "ends after 2 rows, line 1 promises 3"),
        ("1 3\na 1 2 3\nb 1 2 3\n", "line 3 is one more row than the 1"),
        ("3 0\na\nb\nc\n", "line 1 promises vectors of 0 numbers"),
        ("3 3\n", "ends after 0 rows"),
        ("x" * (1 << 20), "line 1 is longer"),
        ("\x00\x01\x02\x03" * 50, "line 1"),
    ],
)
@pytest.mark.parametrize("name", ["v.txt", "v.vec"])
def test_a_malformed_text_names_file_and_line(tmp_path, content, message, name):
    path = written(tmp_path, name, content)
    with pytest.raises(ModelError, match=message) as caught:
        load_word_vectors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_gzip_file_is_named(tmp_path):
    path = written(tmp_path, "v.txt.gz", gzip.compress(GLOVE.encode() * 100)[:-20])
    with pytest.raises(ModelError, match=r"v\.txt\.gz"):
        load_word_vectors(path)


def test_words_cut_inside_a_character_and_words_given_twice_are_noted():
    silent = Silent()
    found = load_word_vectors(datapath("w2v_keyedvectors_load_test.modeldata"), progress=silent)
    np.testing.assert_allclose(found.matrix, [[0.6] * 3, [0.1, 0.2, 0.3]], rtol=1e-6)
    assert "2 words are no valid UTF-8" in silent.notes[0]


def test_the_first_of_equal_words_counts(tmp_path):
    silent = Silent()
    found = load_word_vectors(written(tmp_path, "v.txt", "a 1 2\nb 3 4\na 5 6\n"), progress=silent)
    assert (list(found.words), found.matrix.tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    assert silent.notes == ["v.txt: 1 words occur twice; the first one counts"]


@pytest.mark.parametrize("zipped", [False, True])
def test_word2vec_binary_equals_gensims_reading(tmp_path, zipped):
    path = Path(datapath("euclidean_vectors.bin"))
    reference = KeyedVectors.load_word2vec_format(str(path), binary=True)
    if zipped:
        path = written(tmp_path, "v.bin.gz", gzip.compress(path.read_bytes()))
    found = load_word_vectors(path)
    assert list(found.words) == reference.index_to_key
    assert found.matrix.tolist() == reference.vectors.tolist()
    assert len(load_word_vectors(path, limit=5).words) == 5


@pytest.mark.parametrize("cut", [20, 1000, 130_000])
def test_a_cut_word2vec_binary_is_refused(tmp_path, cut):
    content = Path(datapath("euclidean_vectors.bin")).read_bytes()
    with pytest.raises(ModelError, match=r"v\.bin"):
        load_word_vectors(written(tmp_path, "v.bin", content[:cut]))


def test_a_binary_header_that_promises_too_much_allocates_nothing(tmp_path):
    path = written(tmp_path, "v.bin", b"999999999 300\nthe " + struct.pack("<3f", 1e-20, 2, 3))
    with pytest.raises(ModelError, match="too few for the 999,999,999 vectors"):
        load_word_vectors(path)


@pytest.mark.parametrize("name", ["lee_fasttext_new.bin", "lee_fasttext.bin", "toy-model.bin"])
def test_fasttext_composes_unknown_words(name):
    reference = load_facebook_vectors(datapath(name))
    found = load_word_vectors(datapath(name))
    assert list(found.words) == reference.index_to_key
    np.testing.assert_allclose(found.matrix, reference.vectors, atol=1e-6)
    np.testing.assert_allclose(found.composition.vector("riverbankish"), reference["riverbankish"], atol=1e-6)


def test_a_vec_file_cannot_compose_and_says_so():
    silent = Silent()
    found = load_word_vectors(datapath("lee_fasttext.vec"), progress=silent)
    assert found.composition is None
    assert "holds no n-grams" in silent.notes[0]


@pytest.mark.parametrize("cut", [9, 60, 100, 5_000, 100_000])
@pytest.mark.parametrize("name", ["lee_fasttext_new.bin", "lee_fasttext.bin"])
def test_a_cut_fasttext_file_is_refused(tmp_path, name, cut):
    path = written(tmp_path, "v.bin", Path(datapath(name)).read_bytes()[:cut])
    with pytest.raises(ModelError, match=r"v\.bin"):
        load_word_vectors(path)


class Hostile:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (self.marker,))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["v.kv", "v.model", "v.txt", "v.bin", "v.vec", "v.kv.gz"])
def test_a_hostile_pickle_never_runs(tmp_path, name, protocol):
    marker = tmp_path / "owned"
    content = pickle.dumps(Hostile(str(marker)), protocol=protocol)
    path = written(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(ModelError, match=name) as caught:
        load_word_vectors(path)
    if name in {"v.kv", "v.model"}:
        assert isinstance(caught.value, UntrustedPickleError)
        assert "--trust-pickle" in str(caught.value)
    assert not marker.exists()


def test_a_trusted_pickle_is_read(tmp_path):
    keyed = KeyedVectors(3)
    keyed.add_vectors(["a", "b"], np.arange(6, dtype=np.float32).reshape(2, 3))
    keyed.save(str(tmp_path / "v.kv"))
    found = load_word_vectors(tmp_path / "v.kv", trust_pickle=True)
    assert (list(found.words), found.matrix.tolist()) == (["a", "b"], [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("content", [b"", b"\x80\x04nonsense", pickle.dumps({"a": 1})])
def test_a_trusted_file_that_is_no_gensim_model_is_one_line(tmp_path, content):
    path = written(tmp_path, "v.kv", content)
    with pytest.raises(ModelError, match=r"v\.kv") as caught:
        load_word_vectors(path, trust_pickle=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["nowhere.txt", "."])
def test_a_missing_file_is_named(source):
    with pytest.raises(ModelNotFoundError, match="no word vectors at"):
        load_word_vectors(source)


@pytest.mark.real_model
def test_built_in_glove_is_the_published_table():
    found = load_word_vectors("glove", limit=1000)
    assert list(found.words[:3]) == ["the", ",", "."]
    np.testing.assert_allclose(found.matrix[0, :3], [0.418, 0.24968, -0.41242], rtol=1e-6)
    assert "three" in dict(keyed_vectors(found).most_similar("two", topn=5))


def news():
    texts = Path(datapath("lee_background.cor")).read_text(encoding="latin-1").splitlines()
    return [words(text) for text in texts[:60]]


def test_training_with_one_worker_and_a_seed_is_reproducible_in_any_process():
    code = (
        "import hashlib, sys; sys.path.insert(0, sys.argv[1])\n"
        "import test_word_vectors as t\n"
        "texts = t.news()\n"
        "w = t.train_word2vec(lambda: iter(texts), t.Word2VecTraining(dimension=10, epochs=2))\n"
        "print(hashlib.sha256(w.matrix.tobytes()).hexdigest(), w.words[:3])"
    )
    here = str(Path(__file__).parent)
    prints = [
        subprocess.run(
            [sys.executable, "-c", code, here],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    ]
    texts = news()
    here_too = train_word2vec(lambda: iter(texts), Word2VecTraining(dimension=10, epochs=2))
    digest = hashlib.sha256(here_too.matrix.tobytes()).hexdigest()
    assert prints[0] == prints[1] == f"{digest} {here_too.words[:3]}\n".encode()
    other = train_word2vec(lambda: iter(texts), Word2VecTraining(dimension=10, epochs=2, seed=2))
    assert other.matrix[0].tolist() != here_too.matrix[0].tolist()


def test_training_puts_words_of_one_context_together(rng):
    topics = [["river", "water", "boat", "bank"], ["money", "loan", "credit", "interest"]]
    texts = [list(rng.permutation(topics[number % 2])) for number in range(600)]
    silent = Silent()
    found = train_word2vec(lambda: iter(texts), Word2VecTraining(dimension=20, epochs=60), progress=silent)
    keyed = keyed_vectors(found)
    assert keyed.similarity("river", "boat") > keyed.similarity("river", "loan") + 0.2


@pytest.mark.parametrize("texts", [[], [["once", "only"]], [[]]])
def test_training_on_too_little_says_so(texts):
    with pytest.raises(ModelError, match="needs more text"):
        train_word2vec(lambda: iter(texts))
