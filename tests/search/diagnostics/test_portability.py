import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from search.diagnostics.anisotropy import unit
from search.diagnostics.portability import SharedTexts, portability, procrustes
from search.errors import DiagnosisError


@pytest.fixture
def space(rng):
    """400 documents in 32 dimensions off the origin, and 60 queries each near to one document."""
    documents = rng.normal(size=(400, 32)) + 0.3
    return documents, documents[:60] + 0.1 * rng.normal(size=(60, 32))


def test_an_artificial_rotation_is_recovered_exactly(rng):
    target = rng.normal(size=(100, 16)) + 0.5
    rotation = ortho_group.rvs(16, random_state=1)
    source = target @ rotation.T + 3.0
    found = procrustes(source, target)
    assert np.allclose(found.rotation, rotation, atol=1e-10)
    assert np.allclose(found.apply(source), target, atol=1e-10)


def test_the_map_is_scipys_where_nothing_is_centred(rng):
    source, target = rng.normal(size=(50, 8)), rng.normal(size=(50, 8))
    found = procrustes(source, target, centred=False)
    assert np.allclose(found.rotation, orthogonal_procrustes(source, target)[0])
    assert np.allclose(found.rotation @ found.rotation.T, np.eye(8))


def test_spaces_of_different_dimensions_map_too(rng):
    target = rng.normal(size=(50, 4))
    embedding = ortho_group.rvs(9, random_state=2)[:4]
    found = procrustes(target @ embedding, target)
    assert found.rotation.shape == (9, 4)
    assert np.allclose(found.apply(target @ embedding), target, atol=1e-10)


def test_another_space_finds_by_chance_and_a_map_on_enough_texts_brings_all_back(rng, space):
    documents, queries = space
    rotation = ortho_group.rvs(32, random_state=3)
    shared = rng.normal(size=(500, 32)) + 0.3
    found = portability(
        documents,
        [{row} for row in range(60)],
        home=queries,
        foreign=queries @ rotation.T,
        shared=SharedTexts(shared @ rotation.T, shared),
        sizes=(2, 8, 100),
    )
    assert found.home == 1.0
    assert found.chance == 10 / 400
    assert found.foreign < 0.12
    assert [each.texts for each in found.mapped] == [2, 8, 100, 500]
    assert found.mapped[0].recall < 0.6
    assert found.mapped[-1].recall == 1.0
    assert found.mapped[-1].cosine == pytest.approx(1.0)


def test_recall_by_hand():
    documents = np.array([[1.0, 0], [0, 1], [-1, 0]])
    queries = np.array([[1.0, 0.1], [0.1, 1], [1, 1]])
    # k = 1: first query finds row 0 of {0, 1}: 1/2; second finds row 1 of {0}: 0; the third has nothing to find.
    found = portability(documents, [{0, 1}, {0}, set()], home=queries, foreign=queries[:, :1], k=1)
    assert found.home == pytest.approx(0.25)
    assert found.foreign is None
    assert (found.queries, found.documents, found.chance) == (2, 3, pytest.approx(1 / 3))
    assert portability(documents, [{0}, {0}, {0}], home=queries, foreign=queries, k=9).home == 1.0


def test_what_does_not_fit_together_is_refused():
    ones = np.ones((2, 3))
    with pytest.raises(DiagnosisError, match="each query needs one in both spaces"):
        portability(ones, [{0}], home=ones, foreign=ones)
    with pytest.raises(DiagnosisError, match="has a relevant document"):
        portability(ones, [set(), set()], home=ones, foreign=ones)
    with pytest.raises(DiagnosisError, match="same texts in both spaces, found 2 and 1"):
        procrustes(ones, ones[:1])
    assert np.isfinite(procrustes(unit(ones), unit(ones)).apply(ones)).all()
