import numpy as np
import pytest
from gensim.models.fasttext import load_facebook_vectors
from gensim.test.utils import datapath

from indexer.errors import DamagedIndexError
from indexer.static.composition import NgramComposition, PieceComposition, load_composition, ngrams
from indexer.static.vocabulary import Vocabulary


def test_ngrams_mark_the_ends_of_the_word():
    assert ngrams("ab", 1, 3) == ["<a", "<ab", "a", "ab", "ab>", "b", "b>"]
    assert ngrams("où", 3, 6) == ["<où", "<où>", "où>"]


@pytest.mark.parametrize("name", ["lee_fasttext_new.bin", "crime-and-punishment.bin", "toy-model.bin"])
def test_ngram_vectors_equal_gensims(name):
    reference = load_facebook_vectors(datapath(name))
    ours = NgramComposition(reference.vectors_ngrams, reference.min_n, reference.max_n)
    for word in ["zxqvriver", "ZX", "naïve", "непонятность", "u.s", "shan't", "x" * 60]:
        assert word not in reference.key_to_index
        np.testing.assert_allclose(ours.vector(word), reference[word], atol=1e-6)


def test_pieces_are_cut_greedily_longest_first():
    table = np.eye(4, dtype=np.float32)
    pieces = PieceComposition(Vocabulary.of(["un", "u", "##able", "##n"]), table)
    assert pieces.vector("unable").tolist() == [0.5, 0, 0.5, 0]
    assert pieces.vector("unn").tolist() == [0.5, 0, 0, 0.5]
    assert pieces.vector("unx") is None
    assert pieces.vector("") is None


def test_a_composition_opens_as_it_was_saved(tmp_path, rng):
    table = rng.normal(size=(7, 3)).astype(np.float32)
    NgramComposition(table, 2, 4).save(tmp_path)
    opened = load_composition(tmp_path)
    assert opened.fingerprint == NgramComposition(table, 2, 4).fingerprint
    assert opened.vector("word").tolist() == NgramComposition(table, 2, 4).vector("word").tolist()


@pytest.mark.parametrize("content", ["", "{}", '{"kind": "other"}', "[1]"])
def test_a_damaged_composition_is_named(tmp_path, content):
    (tmp_path / "composition.json").write_text(content)
    with pytest.raises(DamagedIndexError, match=r"composition\.json"):
        load_composition(tmp_path)
