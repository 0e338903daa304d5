import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import DamagedIndexError
from indexer.static.vocabulary import Vocabulary


@given(st.lists(st.text(max_size=20), unique=True, max_size=50), st.lists(st.text(max_size=20), max_size=20))
def test_every_word_is_found_at_its_place_and_no_other(words, others):
    vocabulary = Vocabulary.of(words)
    assert list(vocabulary) == words
    assert [vocabulary[number] for number in range(len(words))] == words
    assert vocabulary.ids(words).tolist() == list(range(len(words)))
    numbers = {word: number for number, word in enumerate(words)}
    assert vocabulary.ids(others).tolist() == [numbers.get(word, -1) for word in others]


def test_a_large_vocabulary_survives_probing(tmp_path):
    words = [f"word{number}" for number in range(40_000)]
    Vocabulary.of(words).save(tmp_path)
    opened = Vocabulary.load(tmp_path)
    assert opened.ids(words[::7]).tolist() == list(range(0, 40_000, 7))
    assert opened.digest() == Vocabulary.of(words).digest()
    assert "word40000" not in opened


def test_a_word_given_twice_is_named():
    with pytest.raises(ValueError, match="'bank' 2 times"):
        Vocabulary.of(["river", "bank", "bank"])


@pytest.mark.parametrize("name", ["letters", "offsets", "hashes", "slots"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut"])
def test_a_damaged_file_is_named(tmp_path, name, damage):
    Vocabulary.of(["river", "bank"]).save(tmp_path)
    path = tmp_path / f"words_{name}.npy"
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(b"" if damage == "empty" else content[:-5])
    with pytest.raises(DamagedIndexError, match=f"words_{name}.npy"):
        Vocabulary.load(tmp_path)


def test_files_of_two_vocabularies_are_refused(tmp_path):
    Vocabulary.of(["river", "bank"]).save(tmp_path)
    np.save(tmp_path / "words_letters.npy", np.zeros(3, dtype=np.uint8))
    with pytest.raises(DamagedIndexError, match="fit together"):
        Vocabulary.load(tmp_path)
