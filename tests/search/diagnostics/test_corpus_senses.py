import numpy as np
import pytest

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import Place, Span, open_states
from search.diagnostics.anisotropy import token_anisotropy, unit
from search.diagnostics.context_dependence import context_dependence
from search.diagnostics.corpus_senses import corpus_senses, group_vectors
from search.errors import DiagnosisError


@pytest.fixture(scope="module")
def reader(tiny_transformers):
    return open_states(TransformerSpec(str(tiny_transformers["plain"])))


def test_groups_are_found_and_their_number_is_chosen(rng):
    centres = np.eye(8)[:3]
    truth = np.repeat([0, 1, 2], 20)
    labels, silhouettes = group_vectors(unit(centres[truth] + 0.05 * rng.normal(size=(60, 8))))
    assert max(silhouettes, key=lambda each: each[1])[0] == 3
    assert len({(label, true) for label, true in zip(labels.tolist(), truth.tolist(), strict=True)}) == 3


def test_an_outlier_does_not_hide_two_groups(rng):
    # Two loose groups of 12 and a stray occurrence: the best mean over occurrences parts the stray one from the rest.
    centres = np.eye(6)[[0] * 12 + [1] * 12]
    vectors = unit(np.concatenate([centres + 0.35 * rng.normal(size=(24, 6)), -np.ones((1, 6))]))
    labels, _ = group_vectors(vectors)
    assert len(set(labels[:12].tolist()) | set(labels[12:24].tolist())) > 1
    assert np.bincount(labels).max() <= 13


def test_one_cloud_few_and_equal_vectors_are_one_sense(rng):
    for vectors in (unit(rng.normal(size=(200, 60))), unit(rng.normal(size=(3, 5))), np.tile([[1.0, 0]], (50, 1))):
        assert not group_vectors(vectors)[0].any()


def test_two_wordings_of_a_word_in_a_corpus(reader):
    texts = ["my bank account is empty"] * 6 + ["i sat on the river bank of water"] * 4 + ["no such word", ""]
    found = corpus_senses("Bank", iter(texts), reader)
    assert (found.occurrences, found.read, found.layer) == (10, 10, 2)
    assert [group.size for group in found.groups] == [6, 4]
    assert all("account" in example.line for example in found.groups[0].examples)
    assert all("river" in example.line for example in found.groups[1].examples)
    assert all(texts[example.text].startswith("i sat") for example in found.groups[1].examples)
    few = corpus_senses("bank", texts, reader, most=5)
    assert (few.occurrences, few.read) == (10, 5)
    assert corpus_senses("account", texts[:2], reader).silhouettes == ()


def test_a_word_that_is_not_there_and_a_layer_that_is_not(reader):
    with pytest.raises(DiagnosisError, match="stands in none of the texts"):
        corpus_senses("xyz", ["a bank"], reader)
    with pytest.raises(DiagnosisError, match="no word to look for"):
        corpus_senses(" ", ["a bank"], reader)
    with pytest.raises(DiagnosisError, match="layers 0 to 2, asked for layer 7"):
        corpus_senses("bank", ["a bank"], reader, layer=7)


def test_self_similarity_is_the_mean_cosine_of_occurrences_less_anisotropy(reader):
    texts = ["the river bank", "my bank account", "a bank of water", "river bank 9"]
    found = context_dependence(texts, reader, least=4, layer=1)
    places = [Place(text, Span(text.index("bank"), text.index("bank") + 4)) for text in texts]
    units = unit(reader.word_states(places)[1])
    cosines = (units @ units.T)[np.triu_indices(4, 1)]
    anisotropy = token_anisotropy(reader, texts, np.random.default_rng(0))[1]
    assert found.words == 1
    assert found.stable == found.dependent
    assert found.stable[0] == ("bank", 4, pytest.approx(cosines.mean() - anisotropy, abs=1e-5))
    with pytest.raises(DiagnosisError, match="occurs 10 times"):
        context_dependence(texts, reader)


def test_words_are_ranked_from_both_ends(reader):
    texts = ["the river bank", "the river boat", "the river fish", "my the account", "water of the a"] * 2
    found = context_dependence(texts, reader, least=2, shown=2)
    similarities = [word.self_similarity for word in (*found.dependent, *found.stable[::-1])]
    assert similarities == sorted(similarities)
    assert found.words > 3
