import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.encoder import WordEncoder
from indexer.errors import DamagedIndexError, FormatVersionError
from indexer.static.averaging import averaged, load, verify
from indexer.static.composition import PieceComposition
from indexer.static.vocabulary import Vocabulary

WORDS = ["river", "bank", "money", "naïve", "straße", "u.s", "based", "don't"]


def small(rng, **options):
    return averaged(WORDS, rng.normal(size=(8, 5)), rng.random(8) + 0.1, **options)


def pieces(rng):
    return PieceComposition(Vocabulary.of(["riv", "##ers", "ban", "##k", "##s"]), rng.normal(size=(5, 5)).astype("f4"))


def test_a_text_is_the_weighted_sum_of_its_words():
    encoder = averaged(["a", "b"], [[1, 0], [0, 1]], [2, 1])
    # a twice, b once: (2 * 2, 1) / sqrt(17)
    expected = np.array([[4, 1]]) / math.sqrt(17)
    np.testing.assert_allclose(encoder.encode(["a b, A!"]), expected, atol=1e-7)


def test_logarithmic_term_frequency_counts_a_repeated_word_less():
    encoder = averaged(["a", "b"], [[1, 0], [0, 1]], [1, 1], term_frequency="log")
    expected = np.array([[1 + math.log(3), 1]]) / math.hypot(1 + math.log(3), 1)
    np.testing.assert_allclose(encoder.encode(["a a a b"]), expected, atol=1e-7)
    np.testing.assert_allclose(encoder.encode(["zz a a a b"] * 3000)[2999:], expected, atol=1e-7)


@pytest.mark.parametrize("text", ["", "   ", "!!!", "zxqv blorft", "🤷"])
def test_a_text_without_a_known_word_is_a_row_of_zeros(rng, text):
    encoder = small(rng)
    assert not encoder.encode([text]).any()
    assert not encoder.encode([text] * 5000).any()
    assert encoder.coverage(text).known == ()
    assert encoder.word_weights(text) == []


def test_no_texts_give_no_rows(rng):
    assert small(rng).encode([]).shape == (0, 5)


def test_coverage_shows_words_in_order(rng):
    found = small(rng).coverage("The Bank, bank. BANK u.s.-based don’t naïve Straße zxqv")
    assert found.known == ("bank", "bank", "bank", "u.s", "based", "don't", "naïve", "straße")
    assert found.unknown == ("the", "zxqv")


@pytest.mark.parametrize("term_frequency", ["raw", "log"])
@pytest.mark.parametrize("composed", [False, True])
@settings(max_examples=40, deadline=None)
@given(texts=st.lists(st.lists(st.sampled_from([*WORDS, "rivers", "banks", "zz", "river's"])).map(" ".join)))
def test_bulk_and_single_encoding_agree(term_frequency, composed, texts):
    rng = np.random.default_rng(3)
    options = {"composition": pieces(rng), "composed_weight": 1.7} if composed else {}
    encoder = small(rng, term_frequency=term_frequency, **options)
    texts = [*texts, "of " * 1000]  # enough characters for the bulk path
    single = np.concatenate([encoder.encode([text[:3000]]) for text in texts])
    np.testing.assert_allclose(encoder.encode([text[:3000] for text in texts] * 2)[: len(texts)], single, atol=1e-6)


def test_word_weights_sum_to_the_vector(rng):
    encoder = small(rng, term_frequency="log", composition=pieces(rng), composed_weight=0.5)
    assert isinstance(encoder, WordEncoder)
    text = "river bank river rivers zz"
    parts = encoder.word_weights(text)
    assert [word for word, _, _ in parts] == ["river", "bank", "river", "rivers"]
    total = sum(weight * vector for _, weight, vector in parts)
    np.testing.assert_allclose(total / np.linalg.norm(total), encoder.encode([text]), atol=1e-6)


def test_many_blocks_keep_the_order_of_texts(rng):
    encoder = averaged([f"w{n}" for n in range(300)], np.eye(300))
    texts = [f"w{n % 300} " * 400 for n in range(900)]
    assert encoder.encode(texts).argmax(axis=1).tolist() == [n % 300 for n in range(900)]
    assert encoder.count_tokens(texts) == 900 * 400


def test_a_saved_encoder_opens_the_same(rng, tmp_path):
    encoder = small(rng, composition=pieces(rng), composed_weight=0.5, name="test")
    encoder.save(tmp_path)
    opened = load(tmp_path)
    texts = ["river rivers banks", "don't", "zz"]
    assert opened.encode(texts).tolist() == encoder.encode(texts).tolist()
    assert opened.fingerprint == encoder.fingerprint
    assert opened.name == "test"
    verify(tmp_path)
    content = json.loads((tmp_path / "encoder.json").read_text())
    assert content["kind"] == "averaged"
    assert content["fingerprint"] == encoder.fingerprint


def test_the_fingerprint_follows_everything_that_decides_a_vector(rng):
    table, weights = rng.normal(size=(8, 5)), np.ones(8)
    other = table.copy()
    other[3, 3] += 1e-3
    encoders = [
        averaged(WORDS, table, weights),
        averaged(WORDS[::-1], table, weights),
        averaged(WORDS, other, weights),
        averaged(WORDS, table, weights * 2),
        averaged(WORDS, table, weights, term_frequency="log"),
        averaged(WORDS, table, weights, composed_weight=2.0),
        averaged(WORDS, table, weights, composition=pieces(rng)),
    ]
    assert len({encoder.fingerprint for encoder in encoders}) == len(encoders)
    assert averaged(WORDS, table.copy()).fingerprint == encoders[0].fingerprint


@pytest.mark.parametrize(
    "name", ["table.npy", "weights.npy", "words_slots.npy", "encoder.json", "composition/pieces.npy"]
)
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "altered"])
def test_a_damaged_file_is_refused(rng, tmp_path, name, damage):
    small(rng, composition=pieces(rng)).save(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        new = {"empty": b"", "cut": content[:-3], "altered": content[:-3] + b"xyz"}[damage]
        path.write_bytes(new)
    with pytest.raises(DamagedIndexError, match=name.rsplit("/", maxsplit=1)[-1].split(".", maxsplit=1)[0]):
        load(tmp_path)


def test_a_table_of_another_encoder_of_the_same_shape_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    words = [f"w{n}" for n in range(20_000)]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        averaged(words, rng.normal(size=(20_000, 50))).save(tmp_path / name)
    shutil.copy(tmp_path / "one" / "table.npy", tmp_path / "two" / "table.npy")
    with pytest.raises(DamagedIndexError, match=r"table\.npy is not the file"):
        load(tmp_path / "two")


def test_another_tokenizer_version_is_named(rng, tmp_path):
    small(rng).save(tmp_path)
    content = json.loads((tmp_path / "encoder.json").read_text())
    (tmp_path / "encoder.json").write_text(json.dumps(content | {"tokenizer_version": 0}))
    with pytest.raises(FormatVersionError, match="tokenizer version"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("table", "weights", "message"),
    [
        ([[1, 2]], [1, 1], "2 words need as many rows"),
        ([[1, 2], [3, 4]], [1], "2 words need as many rows"),
        ([[1, 2], [3, math.nan]], [1, 1], "finite"),
    ],
)
def test_parts_that_do_not_fit_are_refused(table, weights, message):
    with pytest.raises(ValueError, match=message):
        averaged(["a", "b"], table, weights)


def test_a_query_imports_nothing_heavy(rng, tmp_path):
    small(rng, composition=pieces(rng)).save(tmp_path)
    code = (
        "import sys, pathlib\n"
        "from indexer.static.averaging import load\n"
        "load(pathlib.Path(sys.argv[1])).encode(['river banks'])\n"
        "heavy = {'gensim', 'torch', 'scipy', 'pandas', 'pyarrow', 'transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
