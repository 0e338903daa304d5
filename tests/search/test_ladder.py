"""Every family of embeddings in one table."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from indexer.spec import Family
from search.ladder import RUNGS, Extras, ladder_retrievers

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {"word2vec", "glove", "distilled", "fitted", "layer0", "layer0-white", "contextual", "whitened"}


def test_the_ladder_climbs_in_the_order_of_the_field():
    names = [spec.name for spec in ladder_retrievers(Extras(), {})]
    assert set(names) >= FAMILIES
    assert names.index("word2vec") < names.index("glove") < names.index("contextual") < names.index("whitened")
    assert len(names) == len(RUNGS)


def test_families_with_a_path_come_before_the_sentence_transformer():
    specs = {spec.name: spec for spec in ladder_retrievers(Extras("a.bin", "DIR/bert", "DIR/elmo", "DIR/m2v"), {})}
    names = list(specs)
    for name, family, option, value in (
        ("fasttext", Family.STATIC, "vectors", "a.bin"),
        ("token-table", Family.TOKEN_TABLE, "model", "DIR/m2v"),
        ("elmo", Family.ELMO, "model", "DIR/elmo"),
        ("bert", Family.CONTEXTUAL, "model", "DIR/bert"),
    ):
        assert (specs[name].family, specs[name].get(option)) == (family, value)
        assert names.index("word2vec") < names.index(name) < names.index("contextual")
    assert specs["bert"].get("precision") == "bf16"


def test_the_precision_asked_for_is_the_sentence_transformers_and_not_the_layers():
    specs = {spec.name: spec for spec in ladder_retrievers(Extras(), {"precision": "fp32"})}
    assert specs["contextual"].get("precision") == "fp32"
    assert specs["layer2"].get("precision") == "bf16"


@pytest.mark.slow
@pytest.mark.real_model
def test_a_ladder_of_the_built_in_collection(tmp_path, shared_data):
    picture = tmp_path / "ladder.svg"
    elmo = shared_data / "elmo" / "allennlp"
    command = [sys.executable, "-m", "cli", "ladder", "senses", "--json", "--plot", picture, "--elmo", elmo]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=600)
    found = json.loads(done.stdout)
    rows = found["retrievers"]
    assert set(rows) >= FAMILIES | {"elmo"}
    assert set(found["frontier"]) <= set(rows)
    assert rows["contextual"]["measures"]["nDCG@10"] > rows["glove"]["measures"]["nDCG@10"]
    assert all(row["cost"]["index_seconds"] > 0 for row in rows.values())
    drawn = picture.read_text()
    assert all(f">{name}<" in drawn for name in FAMILIES)
    assert "stroke-dasharray" in drawn
