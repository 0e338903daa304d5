"""Ids told apart by their hashes, in little memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpora.document import Document
from corpora.duplicates import SeenHashes, unique
from corpora.options import Duplicates
from corpora.read_log import ReadLog


@given(st.lists(st.lists(st.integers(-20, 20), max_size=12), max_size=30))
def test_seen_hashes_agree_with_a_set(batches):
    seen, known = SeenHashes(), set()
    for batch in batches:
        expected = []
        for value in batch:
            expected.append(value in known)
            known.add(value)
        assert seen.add(np.array(batch, np.int64)).tolist() == expected


@given(st.lists(st.sampled_from("abcde")), st.sampled_from([Duplicates.FIRST, Duplicates.LAST]))
def test_each_id_is_kept_once_at_its_first_or_last_place(ids, choice):
    documents = [Document(doc_id, str(place)) for place, doc_id in enumerate(ids)]
    found = list(unique(lambda _: iter(documents), choice, ReadLog()))
    places = {doc_id: place for place, doc_id in enumerate(ids)}
    if choice is Duplicates.FIRST:
        places = {doc_id: ids.index(doc_id) for doc_id in ids}
    assert [int(document.text) for document in found] == sorted(places.values())


def test_equal_hashes_of_different_ids_are_not_taken_for_duplicates():
    class Colliding(str):
        __slots__ = ()

        def __hash__(self):
            return 7

    documents = [Document(Colliding(name), name, source=f"f:{n}") for n, name in enumerate(["a", "b", "c"])]
    found = list(unique(lambda _: iter(documents), Duplicates.REFUSE, ReadLog()))
    assert [document.text for document in found] == ["a", "b", "c"]
