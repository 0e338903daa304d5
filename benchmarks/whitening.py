"""Whitening on real collections: raw, `auto`, constants and a grid, on every layer and on word vectors.

    python -m benchmarks.whitening DATA STATES [--collections cranfield,cacm] [--static] [--json FILE]

DATA holds BEIR folders; STATES keeps the layers' states between runs. No figure of `auto` uses a query or a
judgement before it is scored.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corpora.builtin.lee import open_lee
from corpora.catalog import open_collection
from indexer.vectors import Vectors, normalize
from indexer.whitening import VectorStatistics, Whitening, WhiteningSpec
from indexer.whitening_strength import GeneralSpace, general_texts
from search.evaluation.measures import evaluate_run, mean_scores
from search.ranking import Run, ScoredDocument

RANKS = ("64", "128", "256", "384")
SHRINKAGES = ("0.02", "0.1", "0.3", "0.6")
CONSTANTS = ("0.1", "0.3", "0.9")
#: What whitening was before: all of the mean, e = 1 - c^2 with c of the collection.
OLD_RULE = "1-c^2"


class Judged(NamedTuple):
    """A collection in memory."""

    doc_ids: list[str]
    texts: list[str]
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    exclude_same_id: bool


def read(data: Path, name: str) -> Judged:
    """Read a collection and its test judgements: a folder of the data, or a built-in one."""
    collection = open_collection(str(data / name) if (data / name).is_dir() else name)
    documents = list(collection.documents())
    qrels = {query: dict(grades) for query, grades in collection.qrels["test"].items() if grades}
    queries = {query: collection.queries[query].text for query in qrels if query in collection.queries}
    ids, texts = [d.doc_id for d in documents], [d.searchable_text for d in documents]
    return Judged(ids, texts, queries, qrels, collection.exclude_same_id)


def quality(judged: Judged, queries: Vectors, documents: Vectors) -> float:
    """Return the mean nDCG@10 of unit vectors, ties in trec_eval's order."""
    order = np.array(sorted(range(len(judged.doc_ids)), key=judged.doc_ids.__getitem__, reverse=True))
    scores = queries @ documents[order].T
    run: Run = {}
    for row, query in enumerate(judged.queries):
        best = order[np.argsort(-scores[row], kind="stable")[:11]].tolist()
        if judged.exclude_same_id:
            best = [at for at in best if judged.doc_ids[at] != query]
        best = best[:10]
        run[query] = [ScoredDocument(judged.doc_ids[at], float(-place)) for place, at in enumerate(best)]
    return next(iter(mean_scores(evaluate_run(run, judged.qrels, "nDCG@10")).values()))


def whitened(judged: Judged, queries: Vectors, documents: Vectors, fitted: Whitening) -> float:
    """Return the mean nDCG@10 after a whitening."""
    return quality(judged, normalize(fitted.transform(queries)), normalize(fitted.transform(documents)))


def layer_states(folder: Path, name: str, texts: Sequence[str]) -> Vectors:
    """Return (1 + L, n, d) states of all-MiniLM-L6-v2, mean-pooled, from the folder or the model (bf16)."""
    path = folder / f"{name}.npy"
    if not path.exists():
        import torch

        from indexer.contextual.layer_reader import open_layers

        folder.mkdir(parents=True, exist_ok=True)
        layers = open_layers()
        with torch.autocast("cpu", torch.bfloat16):
            np.save(path, layers.layer_states(texts), allow_pickle=False)
    return np.load(path, allow_pickle=False)


def settings(anisotropy: float) -> Iterator[tuple[str, WhiteningSpec]]:
    """Yield every setting that `auto` is compared with."""
    for text in CONSTANTS:
        yield text, WhiteningSpec.parse(text)
    yield OLD_RULE, WhiteningSpec.parse(str(float(np.clip(1.0 - anisotropy**2, 0.0, 1.0))))
    for rank in RANKS:
        for shrinkage in SHRINKAGES:
            yield f"{rank}/{shrinkage}", WhiteningSpec.parse(f"{rank}/{shrinkage}")


def space_row(judged: Judged, queries: Vectors, documents: Vectors, general: GeneralSpace | None) -> dict[str, Any]:
    """Return raw, `auto` and all settings over one space."""
    queries, documents = normalize(queries), normalize(documents)
    statistics = VectorStatistics.gather(documents)
    auto = Whitening.fit(statistics, WhiteningSpec(), general=general)
    blind = Whitening.fit(statistics, WhiteningSpec())
    row: dict[str, Any] = {
        "mean_cosine": statistics.mean_cosine,
        "e": auto.shrinkage,
        "a": auto.share,
        "raw": quality(judged, queries, documents),
        "auto": whitened(judged, queries, documents, auto),
        "auto without general text": whitened(judged, queries, documents, blind),
    }
    if general is not None:
        row |= {
            "general_cosine": general.anisotropy,
            "length_shift": general.length_shift,
            "first_share": general.first_share,
        }
    for name, spec in settings(statistics.mean_cosine):
        row[name] = whitened(judged, queries, documents, Whitening.fit(statistics, spec))
    grid = [row[f"{rank}/{shrinkage}"] for rank in RANKS for shrinkage in SHRINKAGES]
    row["best of grid"] = max(grid)
    return row


def layers_of(data: Path, states: Path, name: str) -> list[dict[str, Any]]:
    """Return a row for each layer over a collection."""
    judged = read(data, name)
    general = general_texts([document.searchable_text for document in open_lee().background()])
    documents = layer_states(states, f"{name}-documents", judged.texts)
    queries = layer_states(states, f"{name}-queries", list(judged.queries.values()))
    whole = layer_states(states, "general-texts", general.passages)
    parts = layer_states(states, "general-sentences", general.sentences)
    rows = []
    for layer in range(len(documents)):
        space = GeneralSpace.measure(whole[layer], parts[layer])
        rows.append({"layer": layer, **space_row(judged, queries[layer], documents[layer], space)})
    return rows


def static_of(data: Path, name: str) -> list[dict[str, Any]]:
    """Return a row for each table of word vectors and weighting over a collection."""
    from indexer.static.corpus_table import for_corpus
    from indexer.static.tokenizer import words
    from indexer.static.weights import count_words
    from indexer.static.word_vectors import load_word_vectors, train_word2vec

    judged = read(data, name)
    general = general_texts([document.searchable_text for document in open_lee().background()])
    counts = count_words([judged.texts])
    tables = {
        "glove": load_word_vectors("glove"),
        "word2vec": train_word2vec(lambda: iter(map(words, judged.texts))),
    }
    rows = []
    for source, vectors in tables.items():
        for weights in ("idf", "sif"):
            encoder = for_corpus(vectors, counts, weighting=weights)
            space = GeneralSpace.measure(encoder.encode(general.passages), encoder.encode(general.sentences))
            asked = encoder.encode(list(judged.queries.values()))
            found = space_row(judged, asked, encoder.encode(judged.texts), space)
            rows.append({"vectors": source, "weights": weights, **found})
    return rows


def table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"{row[name]:.3f}" if isinstance(row.get(name), float) else str(row.get(name, "")) for name in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("states", type=Path)
    parser.add_argument("--collections", default="cranfield,cacm,vaswani,scifact,adi,senses,lee")
    parser.add_argument("--static", action="store_true", help="word vectors instead of layers")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = []
    for name in given.collections.split(","):
        found = static_of(given.data, name) if given.static else layers_of(given.data, given.states, name)
        rows += [{"collection": name, **row} for row in found]
    symptoms = ["mean_cosine", "general_cosine", "length_shift", "first_share", "e", "a"]
    head = ["collection", *(["vectors", "weights"] if given.static else ["layer"])]
    compared = ["raw", "auto", "best of grid", *CONSTANTS, OLD_RULE, "auto without general text"]
    print(table(rows, [*head, *symptoms]), table(rows, [*head, *compared]), sep="\n\n")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
