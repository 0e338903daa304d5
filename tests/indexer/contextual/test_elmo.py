import json
import shutil

import h5py
import numpy as np
import pytest

from indexer.contextual.elmo import ElmoEncoder, ElmoSpec, load, open_elmo, tokenize
from indexer.contextual.elmo_weights import options_of, read_weights
from indexer.errors import DamagedIndexError, ModelError, ModelNotFoundError, SpecError

FIXTURES = {"allennlp": "sentences.json", "bilm-tf": "lm_embeddings_sentences.json"}


@pytest.fixture
def published(shared_data):
    return shared_data / "elmo" / "allennlp"


@pytest.mark.parametrize("name", FIXTURES)
def test_thirty_reference_sentences_are_reproduced_with_state_carried(shared_data, name):
    folder = shared_data / "elmo" / name
    lists = json.loads((folder / FIXTURES[name]).read_text())
    encoder = open_elmo(ElmoSpec(str(folder)))
    batches = [[each[number].split() for each in lists] for number in range(10)]
    expected = [h5py.File(folder / f"lm_embeddings_{k}.hdf5", "r") for k in range(3)]
    compared = 0
    for number, found in enumerate(encoder.sentence_states(batches, carry_state=True)):
        for k, states in enumerate(found):
            forward, backward = expected[k][str(number)][()]
            assert np.abs(states[-1] - np.concatenate([forward, backward], axis=1)).max() < 1e-5
            compared += 1
    assert compared == 30
    # Reset, only the first sentence of each list agrees.
    second = list(encoder.sentence_states(batches))[1][0]
    assert np.abs(second[-1][:, :16] - expected[0]["1"][0]).max() > 1e-2


def test_the_reference_table_of_tokens_is_reproduced(published):
    lines = (published / "vocab_test.txt").read_text().split("\n")
    with h5py.File(published / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][()]
    tokens = lines[: len(expected)]
    assert len(tokens) == 458
    assert np.abs(open_elmo(ElmoSpec(str(published))).token_table(tokens) - expected).max() < 1e-5


def test_a_text_does_not_depend_on_its_company_nor_on_what_came_before(published):
    encoder = open_elmo(ElmoSpec(str(published)))
    texts = ["The bank of the river.", "a", "Banks lend money to people who need it, don't they?"]
    together = encoder.layer_states(texts)
    for row, text in enumerate(texts):
        tokens, states = encoder.token_states(text)
        assert np.allclose(together[:, row], states.mean(axis=1), atol=1e-5)
        assert states.shape == (3, len(tokens), 32)
    assert np.allclose(np.linalg.norm(encoder.encode(texts), axis=1), 1)


def test_layer_zero_ignores_the_neighbours_and_layer_two_does_not(published):
    encoder = open_elmo(ElmoSpec(str(published)))
    river, money = encoder.token_states("river bank"), encoder.token_states("money bank")
    assert np.array_equal(river.states[0, 1], money.states[0, 1])
    assert np.array_equal(river.states[0, 1, :16], river.states[0, 1, 16:])
    assert np.abs(river.states[2, 1] - money.states[2, 1]).max() > 1e-3


def test_mixing_of_layers(published):
    texts = ["The bank of the river."]
    states = open_elmo(ElmoSpec(str(published))).layer_states(texts)[:, 0]

    def unit(vector):
        return vector / np.linalg.norm(vector)

    for spec, expected in [
        (ElmoSpec(str(published)), states.mean(0)),
        (ElmoSpec(str(published), layer=1), states[1]),
        (ElmoSpec(str(published), mixing=(0.5, 0.0, 2.0)), 0.5 * states[0] + 2 * states[2]),
    ]:
        assert np.allclose(open_elmo(spec).encode(texts)[0], unit(expected), atol=1e-5)


def test_empty_unknown_and_endless_texts(published):
    encoder = open_elmo(ElmoSpec(str(published), max_tokens=20))
    rows = encoder.encode(["", "   ", "🤷", "x" * 500, "word " * 100, "word " * 20, "\ud800"])
    assert not rows[:2].any()
    assert np.allclose(np.linalg.norm(rows[2:], axis=1), 1)
    assert np.allclose(rows[4], rows[5])
    assert encoder.truncated(["word " * 100, "word"]) == 1
    assert encoder.count_tokens(["word " * 100, "a b."]) == 23
    assert encoder.encode([]).shape == (0, 32)
    assert encoder.token_states("").states.shape == (3, 0, 32)


def test_tokens_keep_their_case_and_their_apostrophes():
    assert tokenize("The U.S. bank didn't  pay, 3.5%") == [
        "The",
        "U.S",
        ".",
        "bank",
        "didn't",
        "pay",
        ",",
        "3.5",
        "%",
    ]


def test_saved_and_loaded_it_is_the_same_encoder(published, tmp_path):
    encoder = open_elmo(ElmoSpec(str(published), layer=2))
    encoder.save(tmp_path)
    again = load(tmp_path)
    assert isinstance(again, ElmoEncoder)
    assert again.fingerprint == encoder.fingerprint
    assert again.fingerprint != open_elmo(ElmoSpec(str(published), layer=1)).fingerprint
    assert np.array_equal(again.encode(["river bank"]), encoder.encode(["river bank"]))
    weights = tmp_path / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(DamagedIndexError, match="bytes"):
        load(tmp_path)
    weights.unlink()
    with pytest.raises(DamagedIndexError, match="missing"):
        load(tmp_path)


def test_a_layer_that_is_not_there_is_refused(published):
    with pytest.raises(SpecError, match="layers 0 to 2, asked for layer 3"):
        open_elmo(ElmoSpec(str(published), layer=3))
    with pytest.raises(SpecError, match="mixes 3 layers"):
        open_elmo(ElmoSpec(str(published), mixing=(1.0,)))


def _options(**changes):
    options = {
        "lstm": {"dim": 3, "projection_dim": 2, "n_layers": 1, "cell_clip": 3, "proj_clip": 3},
        "char_cnn": {
            "embedding": {"dim": 4},
            "filters": [[1, 2], [2, 2]],
            "n_highway": 1,
            "max_characters_per_token": 10,
        },
    }
    for path, value in changes.items():
        section, key = path.split("__")
        options[section][key] = value
    return options


def _without(section, key):
    options = _options()
    del options[section][key]
    return options


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<html>", "cannot be read as JSON"),
        ("[]", "no JSON object"),
        ("{}", "char_cnn is no JSON object"),
        ('{"char_cnn": {"filters": [[1, 2]]}}', "lstm is no JSON object"),
        (json.dumps(_without("lstm", "dim")), "lstm.dim is None"),
        (json.dumps(_without("lstm", "projection_dim")), "lstm.projection_dim is None"),
        (json.dumps(_without("lstm", "n_layers")), "lstm.n_layers is None"),
        (json.dumps(_without("char_cnn", "filters")), "filters is no list"),
        (json.dumps(_without("char_cnn", "max_characters_per_token")), "max_characters_per_token is None"),
        (json.dumps(_without("char_cnn", "embedding")), "char_cnn.embedding is no JSON object"),
        (json.dumps(_options(lstm__dim="wide")), "lstm.dim is 'wide'"),
        (json.dumps(_options(lstm__dim=True)), "lstm.dim is True"),
        (json.dumps(_options(lstm__dim=10**12)), "whole number"),
        (json.dumps(_options(lstm__projection_dim=9)), "larger than"),
        (json.dumps(_options(lstm__cell_clip=-1)), "cell_clip is -1"),
        (json.dumps(_options(char_cnn__filters=[[1]])), "filters is no list"),
        (json.dumps(_options(char_cnn__filters=[[99, 2]])), "wider than"),
        (json.dumps(_options(char_cnn__activation="gelu")), "expected relu or tanh"),
        (json.dumps(_options(char_cnn__n_highway=1000)), "at most 64"),
    ],
)
def test_malformed_options_get_one_line(published, tmp_path, content, said):
    (tmp_path / "options.json").write_text(content)
    shutil.copy(published / "lm_weights.hdf5", tmp_path)
    with pytest.raises(ModelError, match=said) as caught:
        open_elmo(ElmoSpec(str(tmp_path)))
    assert "options.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def _write(path, options, **changes):
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for name, shape in options.shapes().items():
            if name in changes:
                changes[name](file, name, shape)
            else:
                file[name] = rng.normal(size=shape).astype(np.float32)


def _nan(file, name, shape):
    file[name] = np.full(shape, np.nan, np.float32)


def _linked(file, name, _shape):
    file[name] = h5py.ExternalLink("elsewhere.hdf5", "/x")


def _kept_outside(file, name, shape):
    file.create_dataset(name, shape, "f4", external=[("numbers.bin", 0, h5py.h5f.UNLIMITED)])


def _text(file, name, _shape):
    file[name] = "text"


def _nothing(_file, _name, _shape):
    pass


def _soft_link(file, name, shape):
    file["elsewhere"] = np.zeros(shape, np.float32)
    file[name] = h5py.SoftLink("/elsewhere")


def _dangling(file, name, _shape):
    file[name] = h5py.SoftLink("/nowhere")


def _other_shape(file, name, shape):
    file[name] = np.zeros((shape[0], shape[1] + 1), np.float32)


def _whole_numbers(file, name, shape):
    file[name] = np.zeros(shape, np.int64)


def _objects(file, name, shape):
    """What h5py gives out as Python objects."""
    file.create_dataset(name, shape, h5py.string_dtype())


def _pickled(file, name, _shape):
    """A pickle in opaque bytes, as some programs keep objects in HDF5."""
    file[name] = np.void(b"\x80\x04\x95cos\nsystem\n")


def _group(file, name, _shape):
    file.create_group(name)


def _endless(file, name, _shape):
    """Far larger than the file; nothing of it is stored."""
    file.create_dataset(name, (1 << 40, 1 << 20), "f4", chunks=(1 << 10, 1 << 10))


def _virtual(file, name, shape):
    layout = h5py.VirtualLayout(shape, "f4")
    layout[:] = h5py.VirtualSource("elsewhere.hdf5", "x", shape)
    file.create_virtual_dataset(name, layout)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_nan, "no finite number"),
        (_linked, "link to somewhere else"),
        (_kept_outside, "in another file"),
        (_text, "the options call for"),
        (_nothing, "holds no array"),
        (_soft_link, "link to somewhere else"),
        (_dangling, "link to somewhere else"),
        (_other_shape, "has shape"),
        (_whole_numbers, "int64"),
        (_objects, "has shape .* of object"),
        (_pickled, "has shape"),
        (_group, "has no array"),
        (_endless, "has shape"),
        (_virtual, "in another file"),
    ],
)
def test_malformed_and_hostile_weights_get_one_line(tmp_path, change, said):
    options = options_of(_options(), tmp_path / "options.json")
    path = tmp_path / "weights.hdf5"
    _write(path, options, char_embed=change)
    with pytest.raises(ModelError, match=said) as caught:
        read_weights(path, options)
    assert "\n" not in str(caught.value)


def test_a_group_that_is_a_link_to_another_file_is_not_followed(tmp_path):
    options = options_of(_options(), tmp_path / "options.json")
    _write(tmp_path / "secret.hdf5", options)
    _write(tmp_path / "weights.hdf5", options)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file["RNN_1"]
        file["RNN_1"] = h5py.ExternalLink("secret.hdf5", "/RNN_1")
    with pytest.raises(ModelError, match="link to somewhere else, which is not followed"):
        read_weights(tmp_path / "weights.hdf5", options)


@pytest.mark.parametrize("content", [b"", b"<html>no</html>", b"\x89HDF\r\n\x1a\n" + b"\0" * 40])
def test_a_file_that_is_no_hdf5_gets_one_line(tmp_path, content):
    path = tmp_path / "weights.hdf5"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="cannot be read as HDF5"):
        read_weights(path, options_of(_options(), path))


def test_a_truncated_file_gets_one_line(published, tmp_path):
    for name in ("options.json", "lm_weights.hdf5"):
        shutil.copy(published / name, tmp_path)
    weights = tmp_path / "lm_weights.hdf5"
    whole = weights.read_bytes()
    for kept in (30_000, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:kept])
        with pytest.raises(ModelError, match=r"lm_weights\.hdf5 cannot be read as HDF5") as caught:
            open_elmo(ElmoSpec(str(tmp_path)))
        assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_and_one_with_two(tmp_path):
    with pytest.raises(ModelNotFoundError, match="no ELMo model at"):
        open_elmo(ElmoSpec(str(tmp_path / "nowhere")))
    with pytest.raises(ModelNotFoundError, match="holds no"):
        open_elmo(ElmoSpec(str(tmp_path)))
    for name in ("a_options.json", "b_options.json", "weights.hdf5"):
        (tmp_path / name).touch()
    with pytest.raises(ModelError, match="keep one model in a folder"):
        open_elmo(ElmoSpec(str(tmp_path)))


def test_one_cell_by_hand(tmp_path):
    # No highway, no projection of filters or cells: p = h = 1. All weights 0 but the candidate's bias, 1:
    # c1 = s(0) tanh(1), out1 = s(0) tanh(c1); c2 = s(1) c1 + s(0) tanh(1), out2 = s(0) tanh(c2).
    options = options_of(
        {
            "lstm": {"dim": 1, "projection_dim": 1, "n_layers": 1},
            "char_cnn": {"embedding": {"dim": 1}, "filters": [[1, 1]], "max_characters_per_token": 5},
        },
        tmp_path,
    )
    arrays = {name: np.zeros(shape, np.float32) for name, shape in options.shapes().items()}
    for direction in range(2):
        arrays[f"RNN_{direction}/RNN/MultiRNNCell/Cell0/LSTMCell/B"][1] = 1
    _tokens, states = ElmoEncoder(ElmoSpec("by hand"), options, arrays, "{}").token_states("x")
    first = 0.5 * np.tanh(1)
    second = first / (1 + np.exp(-1)) + 0.5 * np.tanh(1)
    # The only token stands second in either direction, after a sentence boundary.
    assert states[1, 0] == pytest.approx([0.5 * np.tanh(second)] * 2, abs=1e-6)
