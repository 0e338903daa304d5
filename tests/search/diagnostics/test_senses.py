import numpy as np
import pytest

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import Place, Span, open_states
from indexer.static.averaging import averaged
from search.diagnostics.anisotropy import background_texts, mean_cosine, token_anisotropy, unit
from search.diagnostics.occurrences import choose, line_around, occurrences, window
from search.diagnostics.senses import parting_layer, sense_report
from search.errors import DiagnosisError

BACKGROUND = ("the water of a river", "my account is empty", "i sat on a boat")


@pytest.fixture(scope="module")
def reader(tiny_transformers):
    return open_states(TransformerSpec(str(tiny_transformers["plain"])))


def report(reader, word, contexts, **options):
    return sense_report(word, contexts, reader, background=BACKGROUND, **options)


def test_mean_cosine_equals_the_mean_over_all_pairs(rng):
    vectors = rng.normal(size=(3, 7, 5))
    for layer, found in zip(vectors, mean_cosine(vectors), strict=True):
        cosines = unit(layer) @ unit(layer).T
        assert found == pytest.approx(cosines[~np.eye(7, dtype=bool)].mean())
    assert mean_cosine(np.array([[1.0, 0], [0, 1], [3, 3]])) == pytest.approx((0 + 0.5**0.5 * 2) / 3)


def test_random_tokens_of_one_text_are_compared_without_special_pieces(reader, rng):
    states = reader.read("river bank").states[:, 1:3]
    expected = (unit(states)[:, 0] * unit(states)[:, 1]).sum(axis=1)
    assert token_anisotropy(reader, ["river bank"], rng) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(DiagnosisError, match="background texts of two words"):
        token_anisotropy(reader, ["", "river"], rng)


def test_cosines_corrections_and_separations_are_what_they_say(reader):
    found = report(reader, "bank", ["the river bank", "my bank account"])
    places = [Place("the river bank", Span(10, 14)), Place("my bank account", Span(3, 7))]
    first, second = unit(reader.word_states(places)).transpose(1, 0, 2)
    cosines = (first * second).sum(axis=1)
    anisotropy = token_anisotropy(reader, BACKGROUND, np.random.default_rng(0))
    assert [layer.cosine for layer in found.layers] == pytest.approx(cosines, abs=1e-5)
    assert [layer.corrected for layer in found.layers] == pytest.approx(cosines - anisotropy, abs=1e-5)
    separations = 1 - (cosines - anisotropy) / (1 - anisotropy)
    assert [layer.separation for layer in found.layers] == pytest.approx(separations, abs=1e-5)
    assert found.parting_layer == parting_layer(list(separations))


def test_input_rows_are_identical_and_so_is_the_static_vector(reader):
    static = averaged(["bank", "river"], np.eye(2))
    found = report(reader, "bank", ["the river bank", "my Bank account"], static=static)
    assert found.input_rows_identical
    assert found.input_rows_difference == 0.0
    assert found.static_cosine == 1.0
    assert report(reader, "boat", ["a boat", "the boat"], static=static).static_cosine is None


def test_masking_a_neighbour_gives_the_vector_of_the_text_with_a_mask(reader):
    context = "the river bank"
    found = report(reader, "bank", [context, "my bank account"]).contexts[0]
    assert [neighbour.word for neighbour in found.neighbours] == ["the", "river"]
    with_river, without = (
        unit(reader.read(text).states[:, 3].astype(np.float64)) for text in (context, "the [MASK] bank")
    )
    expected = 1 - (with_river * without).sum(axis=1)
    assert found.neighbours[1].effect == pytest.approx(expected, abs=1e-5)
    assert found.neighbours[1].effect[0] == pytest.approx(0, abs=1e-6)
    assert found.moved_most()[0].effect[-1] == max(neighbour.effect[-1] for neighbour in found.neighbours)


def test_attention_shares_sum_to_one(reader):
    found = report(reader, "bank", ["the river xyz bank", "my bank account"]).contexts[0]
    total = np.sum([neighbour.attention for neighbour in found.neighbours], axis=0)
    total += np.array(found.attention_to_itself) + np.array(found.attention_to_special)
    assert total == pytest.approx(np.ones(2), abs=1e-5)
    states = reader.read("the river xyz bank")
    assert found.neighbours[1].attention == pytest.approx(states.attentions[:, :, 6, 2].mean(axis=1), abs=1e-6)


def test_three_contexts_are_averaged_over_their_pairs(reader):
    found = report(reader, "bank", ["the river bank", "my bank account", "a bank of water"])
    assert [(pair.first, pair.second) for pair in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    assert found.layers[2].cosine == pytest.approx(np.mean([pair.cosines[2] for pair in found.pairs]))


def test_equal_contexts_do_not_part(reader):
    found = report(reader, "bank", ["the river bank", "the river bank"])
    assert found.parting_layer is None
    assert [layer.cosine for layer in found.layers] == pytest.approx([1, 1, 1], abs=1e-6)


@pytest.mark.parametrize(
    ("separations", "expected"),
    [([0.0, 0.1, 0.3, 0.4], 2), ([0.2, 0.3], 0), ([0.0, 0.01, 0.04], None), ([0.0, 0.5, 0.1], 1)],
)
def test_the_senses_part_where_half_of_the_way_is_done(separations, expected):
    assert parting_layer(separations) == expected


def test_pieces_are_pooled_and_several_occurrences_said(reader):
    found = report(reader, "xyz", ["the xyz of xyz", "a xyz"], occurrence=[2, 1])
    assert found.contexts[0].pieces == ("x", "##y", "##z")
    assert (found.contexts[0].start, found.contexts[0].end) == (11, 14)
    assert any("3 pieces (x ##y ##z); their vectors are averaged" in note for note in found.notes)
    assert "context 1: 'xyz' stands there 2 times; occurrence 2 is taken" in found.notes


def test_a_word_of_thirty_pieces(reader):
    word = "abcdefghijklmnopqrstuvwxyzabcd"
    found = report(reader, word, [f"the {word}", f"my {word} account"])
    assert len(found.contexts[0].pieces) == 30
    assert any("is 30 pieces" in note for note in found.notes)
    with pytest.raises(DiagnosisError, match=r"alone has 40 pieces, .* reads at most 38"):
        report(reader, "x" * 40, ["x" * 40, "x" * 40])


def test_a_long_context_is_read_in_a_window_around_the_word(reader):
    long = "water " * 100 + "the river bank is empty " + "boat " * 100
    found = report(reader, "bank", [long, "my bank account"])
    assert "river bank is empty" in found.contexts[0].text
    assert found.contexts[0].text[found.contexts[0].start : found.contexts[0].end] == "bank"
    assert any("longer than the model reads" in note for note in found.notes)
    for place in (Place(long, Span(0, 5)), Place(long, Span(len(long) - 5, len(long) - 1))):
        shown, cut = window(place, reader)
        assert cut
        assert shown.text[slice(*shown.span)] == long[slice(*place.span)]
        assert not reader.read(shown.text).cut


@pytest.mark.parametrize(
    ("word", "contexts", "options", "said"),
    [
        ("bank", ["the river", "bank"], {}, r"'bank' does not stand in context 1 \('the river'\)"),
        ("bank", ["bank", "the banker"], {}, "context 2"),
        ("bank", ["bank", "  "], {}, "context 2 is empty"),
        ("bank", ["bank"], {}, "give two or more, found 1"),
        (" ", ["bank", "bank"], {}, "no word to look at"),
        ("bank", ["bank", "bank"], {"occurrence": 2}, "stands 1 times in context 1, asked for occurrence 2"),
        ("bank", ["bank", "bank"], {"occurrence": [1]}, "1 occurrence numbers for 2 contexts"),
    ],
)
def test_bad_input_gets_one_line(reader, word, contexts, options, said):
    with pytest.raises(DiagnosisError, match=said) as caught:
        report(reader, word, contexts, **options)
    assert "\n" not in str(caught.value)


def test_occurrences_are_whole_words_of_any_case():
    assert [span.start for span in occurrences("bank", "Bank, banks, embank; BANK-bank")] == [0, 21, 26]
    assert [span.start for span in occurrences("C++", "C++ and c++")] == [0, 8]
    assert [span.start for span in occurrences("銀行", "大銀行の銀行員")] == [1, 4]


def test_the_line_around_a_word_is_cut_on_both_sides(reader):
    text = "a " * 100 + "bank " + "b " * 100
    line = line_around(Place(text, Span(200, 204)), 20)
    assert line == "...a a a a bank b b b b..."
    assert choose("bank", "a bank", reader).place == Place("a bank", Span(2, 6))


@pytest.mark.real_model
def test_two_senses_of_bank_part_early_and_one_sense_late():
    reader = open_states()
    background = background_texts()[:12]
    account = "The bank raised the interest rate on my account."
    senses = sense_report(
        "bank", ["We sat on the river bank and watched the water.", account], reader, background=background
    )
    same = sense_report("bank", ["The bank lent me money.", account], reader, background=background)
    assert senses.parting_layer == 1
    assert same.parting_layer == 6
    assert senses.layers[3].separation > 4 * same.layers[3].separation
    assert senses.contexts[0].moved_most()[0].word == "river"


@pytest.mark.real_model
def test_the_curve_of_river_bank_and_bank_account():
    background = background_texts()[:2]
    found = sense_report("bank", ["river bank", "bank account"], open_states(), background=background)
    assert found.input_rows_identical
    # As docs/senses.md shows it.
    expected = [0.977, 0.850, 0.822, 0.824, 0.834, 0.848, 0.763]
    assert [layer.cosine for layer in found.layers] == pytest.approx(expected, abs=0.002)
    for context, word in zip(found.contexts, ["river", "account"], strict=True):
        assert [neighbour.word for neighbour in context.neighbours] == [word]
        assert context.neighbours[0].effect[0] == pytest.approx(0.0, abs=1e-6)
        assert context.neighbours[0].effect[-1] > 0.1
