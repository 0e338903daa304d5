import pytest
from transformers import AutoTokenizer

from indexer.contextual.checkpoint import TransformerSpec, find_checkpoint
from indexer.contextual.tokenization import PieceTokenizer, open_tokenizer
from indexer.errors import DamagedIndexError, SpecError

LONG = "unbelievable " * 500


@pytest.fixture(scope="module")
def pieces():
    return open_tokenizer(TransformerSpec())


def test_the_models_own_limit_counts_not_the_packaged_tokenizers(pieces):
    assert pieces.max_length == 256
    assert len(pieces.ids([LONG])[0]) == 256
    assert pieces.budget == 254


def test_ids_are_those_of_transformers(pieces):
    theirs = AutoTokenizer.from_pretrained(find_checkpoint(TransformerSpec()).folder)
    texts = ["Crème brûlée, naïve & f-16!", "", "C++ 机器学习 🤷", "plain words"]
    assert pieces.ids(texts) == theirs(texts, truncation=True, max_length=256, padding=False)["input_ids"]


def test_offsets_cut_a_text_at_its_pieces(pieces):
    text = "Unbelievably naïve"
    (offsets,) = pieces.piece_offsets([text])
    assert [text[start:end] for start, end in offsets] == ["Un", "bel", "ie", "va", "bly", "naive".replace("i", "ï")]
    assert pieces.piece_offsets([""])[0].shape == (0, 2)
    assert len(pieces.piece_offsets([LONG])[0]) == pieces.lengths([LONG])[0] > 254


def test_a_prompt_takes_its_pieces_from_the_window():
    pieces = open_tokenizer(TransformerSpec(document_prompt="passage: "))
    assert pieces.budget == 254 - 2


def test_a_shorter_window_may_be_asked_for_but_none_beyond_the_positions():
    assert open_tokenizer(TransformerSpec(max_length=32)).budget == 30
    with pytest.raises(SpecError, match="reads at most 512 pieces, asked for 600"):
        open_tokenizer(TransformerSpec(max_length=600))


def test_a_lone_surrogate_is_read_as_a_question_mark(pieces):
    assert pieces.ids(["a \ud800 b"]) == pieces.ids(["a ? b"])


def test_what_is_written_is_read_again_the_same(pieces, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(pieces.definition(), encoding="utf-8")
    again = PieceTokenizer.open(path, 256)
    assert again.ids([LONG, "river bank"]) == pieces.ids([LONG, "river bank"])


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(DamagedIndexError, match=r"tokenizer\.json holds no tokenizer"):
        PieceTokenizer.open(path, 256)
