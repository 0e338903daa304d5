import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexer.contextual.batching import batches, padded


def test_batches_go_from_long_to_short_and_count_padding():
    assert list(batches([3, 9, 2, 8, 3], most_pieces=18, most_texts=3)) == [[1, 3], [0, 4, 2]]


def test_a_text_longer_than_a_batch_is_a_batch():
    assert list(batches([50, 1], most_pieces=10, most_texts=8)) == [[0], [1]]


@given(
    st.lists(st.integers(0, 300), max_size=80),
    st.integers(1, 4096),
    st.integers(1, 64),
)
def test_every_row_is_in_one_batch_within_the_bounds(lengths, most_pieces, most_texts):
    made = list(batches(lengths, most_pieces=most_pieces, most_texts=most_texts))
    assert sorted(row for batch in made for row in batch) == list(range(len(lengths)))
    for batch in made:
        longest = max(lengths[row] for row in batch)
        assert len(batch) <= most_texts
        assert len(batch) == 1 or len(batch) * longest <= most_pieces


def test_padding_by_hand():
    ids, mask = padded([[5, 6, 7], [8]], pad_id=1)
    assert np.array_equal(ids, [[5, 6, 7], [8, 1, 1]])
    assert np.array_equal(mask, [[1, 1, 1], [1, 0, 0]])
    assert padded([[5, 6, 7], [8]], pad_id=1, multiple=4)[0].shape == (2, 4)
