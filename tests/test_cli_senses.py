"""Words in context from the command line: what is shown, what is refused, and in how many lines."""

import json
import sys

import pytest

import cli


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program in this process; return exit code, stdout and stderr, each line's spaces as one."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["twindex", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return call


@pytest.fixture
def sense(run, tiny_transformers):
    return lambda *arguments: run("sense", *arguments, "--model", tiny_transformers["plain"])


CONTEXTS = ("the river bank", "my bank account")


def one_line(outcome):
    code, out, err = outcome
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("twindex: ")
    assert "unexpected" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bank", "the river", "a bank"), "'bank' does not stand in context 1 ('the river') as a word of its own"),
        (("bank", "a bank", "the banker"), "'bank' does not stand in context 2"),
        (("bank", "a bank", ""), "context 2 is empty; give a text with 'bank' in it"),
        (("bank", "a bank", " \n "), "context 2 is empty"),
        (("bank", "a bank"), "give two or more, found 1"),
        (("bank",), "give two or more, found 0"),
        ((" ", *CONTEXTS), "no word to look at"),
        (("bank", *CONTEXTS, "--occurrence", "2"), "stands 1 times in context 1, asked for occurrence 2"),
        (("x" * 40, "x" * 40, "x" * 40), "alone has 40 pieces"),
        (("bank", *CONTEXTS, "--plot", "a.gif"), "a .png or .svg file, found 'a.gif'"),
        (("bank", *CONTEXTS, "--plot", "nowhere/a.png"), "nowhere is no folder"),
    ],
)
def test_what_cannot_be_followed_is_said_in_one_line(sense, arguments, said):
    assert said in one_line(sense(*arguments))


def test_several_occurrences_are_announced_and_one_can_be_chosen(sense):
    code, out, _ = sense("bank", "the bank of the bank", "my bank account")
    assert code == 0
    assert "context 1: 'bank' stands there 2 times; occurrence 1 is taken" in out
    code, out, _ = sense("bank", "the bank of the bank", "bank, bank", "--occurrence", "2", "--json")
    found = json.loads(out)
    assert [(context["start"], context["end"]) for context in found["contexts"]] == [(16, 20), (6, 10)]
    assert "context 2: 'bank' stands there 2 times; occurrence 2 is taken" in found["notes"]


def test_a_context_longer_than_the_model_is_read_around_the_word(sense):
    long = "water " * 100 + "the river bank is empty " + "boat " * 100
    code, out, _ = sense("bank", long, "my bank account", "--json")
    found = json.loads(out)
    assert code == 0
    assert "river bank is empty" in found["contexts"][0]["text"]
    assert "context 1 is longer than the model reads; the window around 'bank' is taken" in found["notes"]


def test_a_word_of_thirty_pieces_is_pooled_and_said_so(sense):
    word = "abcdefghijklmnopqrstuvwxyzabcd"
    code, out, _ = sense(word, f"the {word}", f"my {word} account")
    assert code == 0
    assert "is 30 pieces (a ##b ##c" in out
    assert "their vectors are averaged" in out


def test_layers_and_neighbours_are_shown_and_drawn(sense, tmp_path):
    code, out, _ = sense("bank", *CONTEXTS, "--plot", tmp_path / "bank.svg")
    assert code == 0
    assert "“bank” in 2 contexts, layer by layer" in out
    assert "input embeddings: identical in all contexts" in out
    assert "which neighbours moved it" in out
    assert "river" in out
    picture = (tmp_path / "bank.svg").read_text(encoding="utf-8")
    assert "“the river bank” / “my bank account”" in picture
    assert "one static vector" in picture


def test_a_word_alone_among_no_neighbours(sense):
    code, out, _ = sense("bank", "bank", "Bank")
    assert code == 0
    assert "which neighbours" not in out
    assert "do not part" in out


@pytest.fixture(scope="module")
def index(make_index, tmp_path_factory):
    texts = [f"my bank account is empty {letter}" for letter in "abcdef"]
    texts += [f"i sat on the river bank of water {letter}" for letter in "ghij"]
    return make_index(texts, root=tmp_path_factory.mktemp("cli-senses") / "index")


def test_an_index_names_its_words_with_and_without_one_asked_for(sense, index, tmp_path):
    code, out, _ = sense("--index", index)
    assert code == 0
    assert "depend on context most" in out
    assert "for instance" not in out
    code, out, _ = sense("bank", "--index", index, "--plot", tmp_path / "words.png")
    assert code == 0
    assert "6 of 10" in out
    assert "of the words depend on their contexts more" in out
    assert (tmp_path / "words.png").stat().st_size
    code, out, _ = sense("bank", "--index", index, "--sample", "4", "--json")
    found = json.loads(out)
    assert (found["senses"]["occurrences"], found["dependence"]["texts"]) == (10, 4)
    assert {"word", "occurrences", "self_similarity"} == set(found["dependence"]["stable"][0])


def test_a_word_that_the_index_lacks_and_no_index(sense, index, tmp_path):
    assert "'boat' stands in none of the texts" in one_line(sense("boat", "--index", index))
    assert "there is no index at" in one_line(sense("--index", tmp_path / "absent"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sense",), "give a word and two or more contexts, or --index"),
        (("sense", "bank", "a bank", "--index", "x"), "with --index the contexts come from the index"),
        (("layers", "--contexts"), "name a collection"),
        (("layers", "x", "--contexts", "--portability"), "ask for one"),
        (("layers", "--lens", "a bank", "--plot", "a.png"), "--plot would do nothing"),
        (("layers", "x", "--other-model", "y"), "--other-model would do nothing"),
        (("evaluate-senses",), "give FILE and --train FILE, or --probe"),
        (("evaluate-senses", "x.jsonl"), "give FILE and --train FILE, or --probe"),
        (("evaluate-senses", "--probe", "--sample", "3"), "--sample limits the pairs of --train"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_loaded(run, arguments, said):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert said in " ".join(err.replace("│", " ").split())


def pair_file(path, count):
    record = {"sentence1": "the river bank", "index1": 2}
    rows = []
    for number in range(count):
        same = number % 3 > 0
        other = {"sentence2": "a river bank" if same else "my bank account", "index2": 2 if same else 1}
        rows.append({**record, **other, "word": f"w{number % 4}", "label": same})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_pairs_are_judged_by_threshold_and_by_probe(run, tiny_transformers, tmp_path):
    pairs, train = pair_file(tmp_path / "dev.jsonl", 24), pair_file(tmp_path / "train.jsonl", 30)
    model = ("--model", tiny_transformers["plain"])
    code, out, _ = run("evaluate-senses", pairs, "--train", train, *model, "--plot", tmp_path / "a.svg", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["layers"][2]["accuracy"] == 1.0
    assert found["static"]["accuracy"] == pytest.approx(2 / 3)
    assert "static table" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    code, out, _ = run("evaluate-senses", pairs, "--probe", *model, "--plot", tmp_path / "b.svg", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["pairs"], found["occurrences"], found["majority"]) == (True, 24, pytest.approx(2 / 3))
    assert [layer["layer"] for layer in found["layers"]] == [0, 1, 2]
    assert found["layers"][0]["same"] > found["layers"][0]["different"]
    assert "always the commonest" in (tmp_path / "b.svg").read_text(encoding="utf-8")
    code, out, err = run("evaluate-senses", pairs, "--probe", "--train", train, "--sample", "20", *model)
    assert code == 0
    assert "24 pairs of 4 words; one answer for all would be right in 0.667" in out
    assert "the probe learns from 20 of 30 training pairs" in err


def test_a_probe_without_a_file_is_of_the_built_in_senses(run, tiny_transformers):
    code, out, _ = run("evaluate-senses", "--probe", "--model", tiny_transformers["plain"])
    assert code == 0
    assert "269 occurrences of 22 words" in out
    assert "documents that do not hold the word they are labelled with, left out: 1" in out


def test_files_that_cannot_be_probed_are_one_line(run, tiny_transformers, tmp_path):
    (tmp_path / "texts.jsonl").write_text('{"_id": "1", "text": "a bank"}\n')
    (tmp_path / "broken.jsonl").write_text('{"sentence1": "a bank"}\n')
    model = ("--probe", "--model", tiny_transformers["plain"])
    assert "names a word and its sense" in one_line(run("evaluate-senses", tmp_path / "texts.jsonl", *model))
    assert "broken.jsonl:1: no 'index1'" in one_line(run("evaluate-senses", tmp_path / "broken.jsonl", *model))
    one_line(run("evaluate-senses", tmp_path / "absent.jsonl", *model))


def test_contexts_are_counted_and_weighed(run, tiny_transformers, tmp_path):
    source = tmp_path / "texts.jsonl"
    source.write_text("".join(json.dumps({"_id": str(n), "text": f"a bank of {n} the"}) + "\n" for n in range(5)))
    options = ("--contexts", "--model", tiny_transformers["plain"])
    code, out, _ = run("layers", source, *options, "--plot", tmp_path / "growth.png")
    assert code == 0
    assert "why there is no lookup table" in out
    assert "each word with 5 words either side (16 d)" in out
    assert (tmp_path / "growth.png").stat().st_size
    code, out, _ = run("layers", source, *options, "--limit", "2", "--json")
    found = json.loads(out)
    assert (found["survey"]["texts"], found["survey"]["tokens"]) == (2, 10)
    assert found["costs"]["contextual_bytes"][0] == {"window": 0, "bytes": 6 * 16 * 4}


def test_a_lens_names_pieces_and_scores_in_json(run, tiny_transformers):
    code, out, _ = run("layers", "--lens", "the river bank", "--model", tiny_transformers["masked"], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["head"] == "masked"
    assert set(found["cells"][0][0][0]) == {"piece", "score"}


def test_portability_names_its_figures_in_json(run, tiny_transformers, tmp_path):
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    texts = ["the river bank", "my bank account", "a loan of money"]
    rows = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "river"}) + "\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    model = ("--model", tiny_transformers["plain"])
    code, out, _ = run("layers", folder, "--portability", *model, "--json")
    found = json.loads(out)
    assert code == 0
    assert [layer["layer"] for layer in found["layers"]] == [0, 1, 2]
    mapped = found["layers"][0]["mapped"]
    assert mapped == [{"texts": 3, "recall": 1.0, "cosine": mapped[0]["cosine"]}]
    assert (found["unwhitened"]["own"], found["other_model"]) == (1.0, None)
    code, out, _ = run("layers", folder, "--portability", *model)
    assert "map on 3" in out


def test_an_explanation_lines_up_words_unless_told_not_to(run, make_index, tiny_transformers, tmp_path):
    retrievers = f"bm25,contextual:model={tiny_transformers['plain']},backend=torch"
    index = make_index(["the river bank", "my bank account"], root=tmp_path / "index", retrievers=retrievers)
    code, out, _ = run("explain", index, "river", "d0")
    assert code == 0
    assert "nearest word of the document" in out
    code, out, _ = run("explain", index, "river", "d0", "--no-align", "--json")
    assert json.loads(out)["retrievers"]["contextual"]["alignment"] == []
    assert "holds no document 'nope'" in one_line(run("explain", index, "river", "nope"))
