"""The command line as a user meets it: separate processes, exit codes, streams."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.main import get_command

from cli import app
from corpora.document import Document

ROOT = Path(__file__).resolve().parents[1]
Build = Callable[..., Path]


def run(*arguments: str | Path, stdin: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
        timeout=120,
    )


def _strict(text: str) -> object:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} in JSON")

    return json.loads(text, parse_constant=refuse)


def _commands() -> list[str]:
    names = []
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        names += [f"{name} {sub}" for sub in inner] if inner else [name]
    return sorted(names)


@pytest.mark.parametrize("command", _commands())
def test_every_command_has_help_and_stands_in_the_readme(command: str) -> None:
    node = get_command(app)
    for part in command.split():
        node = node.commands[part]  # type: ignore[attr-defined]
    assert node.help
    assert all(getattr(parameter, "help", "x") for parameter in node.params)
    assert f"twindex {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_one_query_as_json_and_nothing_else_on_stdout(build: Build) -> None:
    index = build(["river bank", "money loan", "🤝 “—"])
    done = run("query", index, "river", "-k", "2", "--json")
    assert done.returncode == 0
    answer = _strict(done.stdout)
    assert isinstance(answer, dict)
    assert answer["query"] == "river"
    assert set(answer["retrievers"]) == {"bm25", "static", "hybrid"}
    hit = answer["retrievers"]["static"]["hits"][0]
    assert {"doc_id", "score", "rank", "title", "passage"} <= set(hit)
    assert (hit["doc_id"], hit["rank"], hit["passage"]) == ("d0", 1, "river bank")
    assert {"encode_ms", "search_ms", "bytes_per_text"} <= set(answer["retrievers"]["static"]["cost"])


def test_queries_from_stdin_are_answered_one_by_one(build: Build) -> None:
    done = run("query", build(["river bank", "money"]), "-", "--json", stdin="river\n\n  \nmoney\n")
    assert done.returncode == 0
    decoder, text, answers = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        answer, end = decoder.raw_decode(text)
        answers.append(answer["query"])
        text = text[end:].strip()
    assert answers == ["river", "money"]


def test_a_judged_query_shows_its_quality(build: Build) -> None:
    index = build(
        ["river bank", "money loan", "boat"],
        queries={"q1": "Where is the river?"},
        qrels={"q1": {"d0": 1, "d2": 0}},
    )
    by_id = _strict(run("query", index, "--qid", "q1", "--json").stdout)
    by_text = _strict(run("query", index, "where is the  river?", "--json").stdout)
    for answer in (by_id, by_text):
        assert isinstance(answer, dict)
        assert answer["query_id"] == "q1"
        assert answer["retrievers"]["bm25"]["measures"] == {"nDCG@10": 1.0, "RR": 1.0}
        assert answer["retrievers"]["bm25"]["hits"][0]["relevant"] is True
    refused = run("query", index, "--qid", "nope")
    assert refused.returncode == 1
    assert "holds no query 'nope'; for instance: q1" in refused.stderr


def test_what_a_terminal_cannot_show_is_escaped(build: Build) -> None:
    index = build([Document("“—🤝", "river 🤝 “—")])
    done = run("query", index, "river", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0
    assert "\\U0001f91d" in done.stdout


def test_a_reader_that_goes_away_is_no_error(build: Build) -> None:
    index = build([f"river {number}" for number in range(50)])
    command = f"{sys.executable} -m cli query {index} river -k 50 | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("command", [("query", "x"), ("info",), ("evaluate",)])
def test_a_folder_that_is_no_index_gets_its_own_sentence(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "halted" / "generation-000001.part").mkdir(parents=True)
    for name, sentence in [
        ("absent", "there is no index at"),
        ("empty", "is an empty folder, not an index"),
        ("other", "is not a twindex index"),
        ("file", "is a file, not an index"),
        ("halted", "holds a build that never ended"),
    ]:
        done = run(command[0], tmp_path / name, *command[1:])
        assert done.returncode == 1
        assert sentence in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("query",),
        ("index", "senses"),
        ("nonsense",),
        ("query", "x", "y", "-k", "0"),
        ("query", "x", "y", "-k", "ten"),
    ],
)
def test_a_wrong_call_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_index_with_a_name_of_any_script(build: Build) -> None:
    index = build(["river bank"], name="índice/索引")
    done = run("query", index, "river", "--json")
    assert done.returncode == 0
    assert run("info", index, "--json").returncode == 0


def test_a_failed_first_build_leaves_nothing_that_answers(tmp_path: Path) -> None:
    source = tmp_path / "c.jsonl"
    source.write_text('{"_id": "1", "text": "river"}\n{"_id": "1", "text": "bank"}\n')
    done = run("index", source, tmp_path / "index", "-r", "bm25")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "1" in done.stderr
    assert run("query", tmp_path / "index", "river").returncode == 1


def test_the_query_path_imports_nothing_heavy(build: Build) -> None:
    index = build(["river bank", "money loan"])
    code = (
        "import sys\nsys.argv = ['twindex', 'query', sys.argv[1], 'river', '--json']\nimport cli\n"
        "try:\n    cli.main()\nexcept SystemExit as end:\n    assert not end.code\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'gensim', 'scipy.stats', 'pandas', 'sklearn',"
        " 'matplotlib', 'nncf'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(index)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr


def test_errors_show_a_traceback_only_when_asked(tmp_path: Path) -> None:
    assert "Traceback" not in run("info", tmp_path / "absent").stderr
    assert "Traceback" in run("info", tmp_path / "absent", "--debug").stderr
