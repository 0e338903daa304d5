"""Families of embeddings through the command line: what is read, what is refused, and what is said.

CASES 14 (malformed word vectors), 15 (fastText's n-grams), 20 (plain BERT folders), 21 (prompts).
"""

import json
import pickle
import shutil
import socket
import sys

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import save_facebook_model
from gensim.test.utils import datapath
from safetensors.numpy import save_file

import cli
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import open_states
from indexer.opening import open_index
from search.diagnostics.word_senses import open_reader

DOCUMENTS = ["the river bank", "my account is empty", "a loan of money", "I sat on the boat, on the water."]


@pytest.fixture
def collection(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"_id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(DOCUMENTS)))
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program in this process; return exit code, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["twindex", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return call


def refused(run, collection, tmp_path, *options):
    code, out, err = run("index", collection, tmp_path / "index", *options)
    assert code == 1
    assert out == ""
    assert err.startswith("twindex: ")
    assert err.count("\n") == 1
    assert "unexpected" not in err
    return err


# Case 14


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("short.txt", "river 1 2 3\nbank 1 2\nmoney 1 2 3\n", "line 2 has 2 fields after the word, expected 3"),
        ("page.txt", "<!DOCTYPE html>\n<html></html>\n", "line 1 is '<!DOCTYPE html>' (this is an HTML page)"),
        ("empty.txt", "", "is empty; expected lines of a word and its numbers"),
        ("cut.vec", "3 2\nriver 1 2\n", "ends after 1 rows, line 1 promises 3"),
        ("letter.txt", "river 1 2\nbank 1 x\n", "line 2 holds 'x', expected a number"),
        ("nan.txt", "river 1 2\nbank nan 2\n", "line 2 holds a number that is not finite"),
        ("long.txt", "1 2\nriver 1 2\nbank 1 2\n", "line 3 is one more row than the 1"),
        ("v.kv", pickle.dumps([1]), "is a Python pickle"),
        ("v.model", b"", "is a Python pickle|is empty"),
        ("v.bin", b"9999999 300\nriver " + bytes(12), "too few for the 9,999,999 vectors"),
        ("absent.txt", None, "no word vectors at"),
    ],
)
def test_malformed_word_vectors_are_one_line_that_names_the_line(run, collection, tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    err = refused(run, collection, tmp_path, "-r", "static", "--static", tmp_path / name)
    assert any(part in err for part in said.split("|"))
    assert name in err


def test_word_vectors_of_every_text_form_are_read(run, collection, tmp_path):
    rows = "river 1 0 0\n. . . 0.1 0.2 0.3\nbank 0 1 0\n"
    (tmp_path / "glove.txt").write_text(rows)
    (tmp_path / "word2vec.txt").write_text("3 3\n" + rows)
    (tmp_path / "broken.txt").write_bytes(b"3 3\nriver 1 0 0\nna\xc3 1 1 1\nbank 0 1 0\n")
    for name in ("glove.txt", "word2vec.txt", "broken.txt"):
        options = ("-r", f"static:vectors={tmp_path / name},whitening=none")
        code, _, err = run("index", collection, tmp_path / name.removesuffix(".txt"), *options)
        assert code == 0
        assert ("1 words are no valid UTF-8" in err) == (name == "broken.txt")
        code, out, _ = run("query", tmp_path / name.removesuffix(".txt"), "river", "--json")
        assert json.loads(out)["retrievers"]["static"]["hits"][0]["doc_id"] == "d0"


def test_a_fasttext_file_given_as_word2vec_is_known_by_its_content(run, collection, tmp_path):
    shutil.copy(datapath("lee_fasttext_new.bin"), tmp_path / "word2vec.bin")
    code, _, _ = run("index", collection, tmp_path / "index", "-r", "static", "--static", tmp_path / "word2vec.bin")
    assert code == 0
    cut = tmp_path / "cut.bin"
    cut.write_bytes((tmp_path / "word2vec.bin").read_bytes()[:5000])
    assert "cut.bin is no fastText file, or is cut" in refused(run, collection, tmp_path, "-r", f"static:vectors={cut}")


# Case 15


@pytest.fixture(scope="module")
def fasttext(tmp_path_factory):
    """A tiny fastText model, as `.bin` with its n-grams and as `.vec` without, and what gensim says of it."""
    texts = [text.lower().replace(",", "").strip(".").split() for text in DOCUMENTS] * 20
    model = FastText(texts, vector_size=8, min_count=1, bucket=200, min_n=3, max_n=4, epochs=20, seed=3, workers=1)
    folder = tmp_path_factory.mktemp("fasttext")
    save_facebook_model(model, str(folder / "tiny.bin"))
    model.wv.save_word2vec_format(str(folder / "tiny.vec"))
    return folder, model.wv


def test_unknown_words_use_fasttexts_n_grams_from_index_to_query(run, collection, tmp_path, fasttext):
    folder, reference = fasttext
    assert "riverbanks" not in reference.key_to_index
    code, _, _ = run(
        "index", collection, tmp_path / "bin", "-r", f"static:vectors={folder / 'tiny.bin'},whitening=none"
    )
    assert code == 0
    encoder = open_index(tmp_path / "bin").vectors("static").encoder
    expected = reference["riverbanks"] / np.linalg.norm(reference["riverbanks"])
    np.testing.assert_allclose(encoder.encode(["riverbanks"])[0], expected, atol=1e-5)
    code, out, _ = run("query", tmp_path / "bin", "riverbanks", "--json")
    assert code == 0
    assert len(json.loads(out)["retrievers"]["static"]["hits"]) == 4


def test_a_vec_file_has_no_n_grams_and_says_so(run, collection, tmp_path, fasttext):
    folder, _ = fasttext
    code, _, err = run("index", collection, tmp_path / "vec", "-r", "fasttext", "--static", folder / "tiny.vec")
    assert code == 0
    assert "a .vec file holds no n-grams: unknown words stay unknown" in err
    code, out, _ = run("query", tmp_path / "vec", "riverbanks")
    assert code == 0
    assert "0 of 1 known" in out


def test_fasttext_without_a_file_says_how_to_name_one(run, collection, tmp_path):
    assert "name a file: --static PATH.bin" in refused(run, collection, tmp_path, "-r", "fasttext")


# Case 20


def test_a_plain_bert_folder_is_indexed_and_its_pooling_announced(run, collection, tmp_path, tiny_transformers):
    folder = tiny_transformers["plain"]
    options = ("--model", folder, "--backend", "torch")
    code, _, err = run("index", collection, tmp_path / "index", "-r", "contextual", *options)
    assert code == 0
    assert "has no modules.json and so no pooling of its own: the mean over its pieces is taken" in " ".join(
        err.split()
    )


@pytest.mark.parametrize(("layer", "pooling"), [(2, "first-last"), (1, "cls"), (0, "max")])
def test_layer_and_pooling_decide_the_vectors(run, collection, tmp_path, tiny_transformers, layer, pooling):
    folder = tiny_transformers["plain"]
    options = ("--model", folder, "--backend", "torch", "--layer", layer, "--pooling", pooling)
    code, _, err = run("index", collection, tmp_path / "index", "-r", "contextual", *options)
    assert code == 0
    assert "no pooling of its own" not in err
    states = open_states(TransformerSpec(str(folder))).read(DOCUMENTS[0]).states
    by_hand = {
        "first-last": lambda: (states[1].mean(axis=0) + states[layer].mean(axis=0)) / 2,
        "cls": lambda: states[layer][0],
        "max": lambda: states[layer].max(axis=0),
    }[pooling]()
    found = open_index(tmp_path / "index").vectors("contextual").store.reconstruct(np.array([0]))[0]
    np.testing.assert_allclose(found, by_hand / np.linalg.norm(by_hand), atol=1e-5)


def test_without_network_a_hub_id_fails_at_once(run, collection, tmp_path, monkeypatch):
    for name in ("HF_HUB_OFFLINE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        err = refused(run, collection, tmp_path, "-r", "contextual", "--model", "nobody/no-model-unreachable-2")
    assert "the hub cannot be reached; give a folder" in err


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "config.json").write_text("<html>\n"), "config.json cannot be read as JSON"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"<html>"), "is no whole safetensors file"),
        (lambda folder: (folder / "tokenizer.json").write_text("<html>"), "tokenizer.json holds no tokenizer"),
        (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            "is a pickle, which can run code when loaded",
        ),
        (
            lambda folder: save_file({"embeddings": np.eye(3, dtype=np.float32)}, folder / "model.safetensors"),
            "its retriever is token-table:model=",
        ),
    ],
)
def test_an_unsound_model_is_one_line(run, collection, tmp_path, tiny_transformers, spoil, said):
    folder = shutil.copytree(tiny_transformers["plain"], tmp_path / "model")
    spoil(folder)
    assert said in refused(run, collection, tmp_path, "-r", "contextual", "--model", folder)
    # What looks inside a model says the same.
    open_reader.cache_clear()
    code, _, err = run("sense", "bank", "the river bank", "my bank account", "--model", folder)
    assert (code, err.count("\n")) == (1, 1)
    assert said in err


def test_a_transformer_is_no_static_sentence_model(run, collection, tmp_path, tiny_transformers):
    err = refused(run, collection, tmp_path, "-r", f"token-table:model={tiny_transformers['plain']}")
    assert "expected a tensor 'embeddings'; this is no static model" in err


# Case 21


@pytest.mark.parametrize("how", ["configuration", "options", "notation"])
def test_prompts_come_from_the_model_or_from_an_option(run, collection, tmp_path, tiny_transformers, how):
    folder = shutil.copytree(tiny_transformers["plain"], tmp_path / "e5")
    options = ["--backend", "torch", "--model", folder]
    retriever = "contextual"
    if how == "configuration":
        prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    elif how == "options":
        options += ["--query-prompt", "query: ", "--document-prompt", "passage: "]
    else:
        retriever = 'contextual:query-prompt="query: ",document-prompt="passage: "'
    code, _, err = run("index", collection, tmp_path / "index", "-r", retriever, *options)
    assert code == 0
    assert "looks like an E5 model" not in err
    space = open_index(tmp_path / "index").vectors("contextual").encoder.space
    assert (space.query_prompt, space.document_prompt) == ("query: ", "passage: ")


def test_an_e5_model_without_prompts_is_pointed_out(run, collection, tmp_path, tiny_transformers):
    folder = shutil.copytree(tiny_transformers["plain"], tmp_path / "e5-small")
    _, _, err = run(
        "index", collection, tmp_path / "index", "-r", "contextual", "--backend", "torch", "--model", folder
    )
    assert 'these expect "query: " and "passage: " before the texts' in " ".join(err.split())


# Similarity


def test_similarity_of_texts_as_a_table_and_as_json(run, tmp_path, tiny_vectors):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("score\tsentence1\tsentence2\n5\triver\twater\n1\triver\tmoney\n4\tmoney\tloan\n2\tbank\tboat\n")
    options = ("--static", tiny_vectors, "--only-static")
    code, out, err = run("evaluate-similarity", pairs, *options)
    assert (code, err) == (0, "")
    assert "pairs.tsv: Spearman's correlation over 4 pairs" in " ".join(out.split())
    code, out, _ = run("evaluate-similarity", pairs, *options, "--statistics", pairs, "--whitening", "0.5", "--json")
    found = json.loads(out)
    # cosines .97, 0, .97, .64: rank 3.5 1 3.5 2 against 4 1 3 2
    assert found["static"]["raw"] == pytest.approx(0.9487, abs=1e-3)
    assert found["static"]["whitened"] is not None
    assert (found["pairs"], found["statistics_texts"], found["layers"]) == (4, 6, [])


def test_a_bad_file_of_pairs_is_one_line(run, tmp_path):
    (tmp_path / "pairs.tsv").write_text("1\ta\tb\nx\ta\tb\n")
    code, out, err = run("evaluate-similarity", tmp_path / "pairs.tsv")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "line 2 has 'x' for a score" in err
