"""A collection in numbers."""

import json

import numpy as np
import pytest

from corpora.catalog import open_collection
from corpora.language import guess_language
from corpora.survey import Probes, survey


@pytest.fixture
def collection(tmp_path):
    texts = ["one two three", "one two three", "", "the river and the bank of it"]
    path = tmp_path / "docs.jsonl"
    path.write_text(
        "".join(
            json.dumps({"_id": n, "title": "T" if n == 3 else None, "text": text, "year": 2000}) + "\n"
            for n, text in enumerate(texts)
        )
    )
    return open_collection(path)


def test_numbers_by_hand(collection):
    found = survey(collection)
    assert found.documents == 4
    assert (found.words.total, found.words.least, found.words.most, found.words.median) == (14, 0, 8, 3.0)
    assert found.words.mean == 3.5
    assert found.characters.most == len("T the river and the bank of it")
    assert (found.empty, found.titled, found.repeated_texts) == (1, 1, 1)
    assert found.metadata == (("year", 4),)
    assert dict(found.languages) == {"unknown": 0.75, "English": 0.25}
    assert found.over_window is None
    assert found.summary.documents == 4


def test_models_are_asked_about_the_sampled_texts(collection):
    probes = Probes(
        exceeds_window=lambda texts: [len(text.split()) > 5 for text in texts],
        count_known_words=lambda texts: (
            sum("one" in text for text in texts),
            sum(len(t.split()) for t in texts),
        ),
    )
    found = survey(collection, probes=probes)
    assert (found.over_window.share, found.over_window.of) == (0.25, 4)
    assert (found.known_words.share, found.known_words.of) == (2 / 14, 14)


def test_sample_is_bounded_uniform_and_seeded(tmp_path):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(f'{{"_id": "{n}", "text": "{n}"}}\n' for n in range(2000)))
    drawn = []
    for seed in (1, 1, 2):
        probes = Probes(exceeds_window=lambda texts: drawn.append(texts) or [False] * len(texts))
        assert survey(open_collection(path), probes=probes, sample=100, rng=np.random.default_rng(seed)).sampled == 100
    assert drawn[0] == drawn[1] != drawn[2]
    # The mean of 100 draws from 0..1999 lies within four standard errors of 999.5.
    assert abs(np.mean(list(map(int, drawn[0]))) - 999.5) < 4 * 577 / 10


def test_empty_collection_has_a_survey(tmp_path):
    (tmp_path / "docs.jsonl").write_text("")
    found = survey(open_collection(tmp_path / "docs.jsonl"))
    assert (found.documents, found.words.mean, found.languages) == (0, 0.0, ())


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The river rose and the bank of it was under water for days.", "English"),
        ("Der Fluss stieg und die Bank an dem Ufer war mit Wasser bedeckt, das nicht ablief.", "German"),
        ("Le fleuve est monté et les rives ont été sous les eaux dans la nuit.", "French"),
        ("El río creció y los bancos de la orilla se cubrieron con el agua.", "Spanish"),
        ("Il fiume è salito e le rive della città sono sotto l'acqua, anche nel centro.", "Italian"),
        ("De rivier steeg en het water op de oever is niet gezakt.", "Dutch"),
        ("Floden steg och det var vatten på alla vägar som inte hade vallar.", "Swedish"),
        ("Река поднялась, и берега оказались под водой.", "Russian or another in Cyrillic"),
        ("川の水位が上がった。", "Japanese"),
        ("河水上涨,河岸被淹没。", "Chinese"),
        ("강물이 불어났다.", "Korean"),
        ("", "unknown"),
        ("12345 !!!", "unknown"),
        ("zxqv blorft", "unknown"),
    ],
)
def test_languages(text, language):
    assert guess_language(text) == language
