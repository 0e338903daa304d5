import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import open_states
from indexer.static.averaging import averaged
from indexer.stores import lexical
from indexer.vectors import normalize
from indexer.whitening import Whitening, WhiteningSpec
from search.diagnostics.explain import TermStatistics, explain_terms, explain_words
from search.diagnostics.explain_context import AlignmentModel, explain_context

WORDS = ["river", "bank", "money", "boat", "loan", "water", "fish"]
RANDOM = np.random.default_rng(3)
TABLE = RANDOM.normal(size=(len(WORDS), 5)) + 0.5
WEIGHTS = RANDOM.uniform(0.1, 3, size=len(WORDS))
SPACE = normalize(RANDOM.normal(size=(60, 5)) + 0.7)
odd = ["zxqv", "Bank.", "BANK", "ba\u0301nk", "river\u2028boat", "don't", "Straße", "機器学習", "🤝"]
texts = st.one_of(
    st.lists(st.one_of(st.sampled_from([*WORDS, *odd]), st.text(max_size=5)), max_size=8).map(" ".join),
    st.text(max_size=40),
)
whitenings = st.sampled_from([None, "auto", "3", "0.2", "1.0", "none"])


@settings(max_examples=150, deadline=None)
@given(texts, texts, whitenings, st.sampled_from(["raw", "log"]))
def test_shares_of_word_pairs_sum_to_the_score_for_any_query_and_text(query, text, notation, frequency):
    encoder = averaged(WORDS, TABLE, WEIGHTS, term_frequency=frequency)
    whitening = None if notation is None else Whitening.fit(SPACE, WhiteningSpec.parse(notation))
    vectors = encoder.encode([query, text])
    if whitening is not None:
        vectors = normalize(whitening.transform(vectors))
    expected = float(vectors[0].astype(np.float64) @ vectors[1])
    found = explain_words(query, text, encoder, whitening)
    parts = [pair.share for pair in found.pairs]
    parts += [word.share for word in (*found.query_mean, *found.document_mean)]
    assert found.score == pytest.approx(expected, abs=1e-5)
    assert sum(parts) + found.constant == pytest.approx(expected, abs=1e-5)
    assert sum(share for _, share in found.query_words) == pytest.approx(sum(pair.share for pair in found.pairs))
    spread = explain_words(query, text, encoder, whitening, spread=True)
    assert sum(pair.share for pair in spread.pairs) == pytest.approx(expected, abs=1e-5)
    assert (spread.query_mean, spread.document_mean, spread.constant) == ((), (), 0.0)


def test_shares_by_hand():
    # query (3, 0) + (0, 4) = (3, 4) of length 5; text 2 * (1, 0) + (0, 0) of length 2.
    encoder = averaged(["river", "bank", "boat"], [[3, 0], [0, 4], [1, 0]])
    found = explain_words("river bank zxqv", "boat boat", encoder)
    assert found.score == pytest.approx(0.6)
    assert found.pairs[0] == ("river", "boat", pytest.approx(3 / 5))
    assert found.pairs[1] == ("bank", "boat", pytest.approx(0))
    assert found.unknown == ("zxqv",)
    assert found.constant == 0.0
    assert found.document_words[0] == ("boat", pytest.approx(0.6))


def test_the_mean_of_a_whitening_is_a_term_of_its_own():
    # a = 1, only centred: m = (.5, .5); river (1, 0) - m = (.5, -.5), bank (0, 1) - m = (-.5, .5): cosine -1.
    encoder = averaged(["river", "bank"], [[1, 0], [0, 1]])
    whitening = Whitening.fit(np.array([[1, 0], [0, 1]], np.float32), WhiteningSpec.parse("1.0"))
    found = explain_words("river", "bank", encoder, whitening)
    assert found.score == pytest.approx(-1)
    assert found.pairs[0].share == pytest.approx(0)
    assert found.query_mean[0].share == pytest.approx(-1)
    assert found.document_mean[0].share == pytest.approx(-1)
    assert found.constant == pytest.approx(1)


def test_the_mean_is_taken_out_of_each_word_by_its_weight():
    # m = (.5, .5). Query river river bank: weights 2 and 1, (2, 1) / sqrt 5; less m, 2/3 of it from river.
    encoder = averaged(["river", "bank"], [[1, 0], [0, 1]])
    whitening = Whitening.fit(np.array([[1, 0], [0, 1]], np.float32), WhiteningSpec.parse("1.0"))
    found = explain_words("river river bank", "bank", encoder, whitening, spread=True)
    river = np.array([2, 0]) / 5**0.5 - np.array([0.5, 0.5]) * 2 / 3
    bank = np.array([0, 1]) / 5**0.5 - np.array([0.5, 0.5]) / 3
    text = np.array([-0.5, 0.5])
    length = np.linalg.norm(river + bank) * np.linalg.norm(text)
    shares = {pair.query_word: pair.share for pair in found.pairs}
    assert shares == {
        "river": pytest.approx(river @ text / length, abs=1e-6),
        "bank": pytest.approx(bank @ text / length, abs=1e-6),
    }
    assert found.score == pytest.approx(sum(shares.values()))


def test_texts_of_which_nothing_is_known_have_no_shares():
    encoder = averaged(["river"], [[1.0, 0.0]])
    for query, text in [("", "river"), ("zxqv", "river"), ("river", "!!!")]:
        found = explain_words(query, text, encoder)
        assert (found.score, found.pairs) == (0.0, ())


def test_a_bm25_share_by_hand():
    # length factor .25 + .75 * 2 = 1.75; saturation 3 * 2.2 / (3 + 1.2 * 1.75) = 6.6 / 5.1
    found = explain_terms([TermStatistics("bank", 2, 3, 10, 1.5, 20, 10.0)], k1=1.2, b=0.75)
    assert found.terms[0].length_factor == pytest.approx(1.75)
    assert found.terms[0].saturation == pytest.approx(6.6 / 5.1)
    assert found.score == pytest.approx(2 * 1.5 * 6.6 / 5.1)
    assert explain_terms([], k1=1.2, b=0.75).score == 0.0
    assert explain_terms([TermStatistics("x", 1, 0, 0, 0.0, 0, 0.0)], k1=0.0, b=1.0).score == 0.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    documents = [" ".join(RANDOM.choice([*WORDS, *odd], size=RANDOM.integers(1, 30))) for _ in range(40)]
    folder = tmp_path_factory.mktemp("lexical")
    lexical.build(documents, folder)
    return lexical.LexicalStore.open(folder)


@settings(max_examples=60, deadline=None)
@given(texts)
def test_shares_of_terms_sum_to_the_score_of_whoosh(store, query):
    for document, score in store.search(query, 10):
        statistics = [TermStatistics(*part[:-1]) for part in store.explain(query, document)]
        found = explain_terms(statistics, k1=lexical.K1, b=lexical.B)
        assert found.score == pytest.approx(score, abs=1e-4)


@settings(max_examples=12, deadline=None)
@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=6))
def test_shares_of_terms_sum_to_the_score_in_any_documents(tmp_path_factory, documents, asked):
    folder = tmp_path_factory.mktemp("any")
    lexical.build([f"{document} river" for document in documents], folder)
    store = lexical.LexicalStore.open(folder)
    for query in [*asked, *documents]:
        for document, score in store.search(query, 10):
            statistics = [TermStatistics(*part[:-1]) for part in store.explain(query, document)]
            assert explain_terms(statistics, k1=lexical.K1, b=lexical.B).score == pytest.approx(score, abs=1e-4)


class CountingEncoder:
    """Texts to counts of letters a and b, unit length."""

    dimension = 2
    fingerprint = "letters"

    def __init__(self):
        self.encoded = 0

    def encode(self, texts, *, role=None):
        self.encoded += len(texts)
        return normalize(np.array([[text.count("a"), text.count("b")] for text in texts], np.float32).reshape(-1, 2))

    def count_tokens(self, texts):
        return len(texts)

    def save(self, folder):
        raise NotImplementedError


def test_leaving_words_out_by_hand():
    encoder = CountingEncoder()
    # query (1, 0); text (1, 1): .7071; without "a" 0, without "b" 1, without "zz" .7071
    found = explain_context("a", "A zz b. zz a", encoder)
    assert found.score == pytest.approx(0.5**0.5)
    losses = dict(found.document_words)
    assert losses["a"] == pytest.approx(0.5**0.5)
    assert losses["b"] == pytest.approx(0.5**0.5 - 1)
    assert losses["zz"] == pytest.approx(0)
    assert dict(found.query_words) == {"a": pytest.approx(0.5**0.5)}
    assert found.passes == encoder.encoded == 2 + 4
    capped = explain_context("a", "a b c d", encoder, most_words=2)
    assert (len(capped.document_words), capped.left_out) == (2, 2)
    assert explain_context("", "", encoder).score == 0.0


def test_alignment_names_the_nearest_word(tiny_transformers):
    reader = open_states(TransformerSpec(str(tiny_transformers["plain"])))
    found = explain_context("bank xyz", "bank xyz", CountingEncoder(), inside=AlignmentModel(reader))
    assert found.alignment == (("bank", "bank", pytest.approx(1)), ("xyz", "xyz", pytest.approx(1)))
    first = explain_context("bank", "the river", CountingEncoder(), inside=AlignmentModel(reader, layer=0)).alignment[0]
    states = reader.read("the river").states[0, 1:3]
    query = reader.read("bank").states[0, 1]
    cosines = states @ query / np.linalg.norm(states, axis=1) / np.linalg.norm(query)
    assert first == ("bank", ["the", "river"][int(cosines.argmax())], pytest.approx(cosines.max(), abs=1e-5))
