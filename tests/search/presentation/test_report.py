"""The report: whole, escaped, without a request to anywhere; and its pictures."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from search.errors import RunFileError
from search.evaluation.cost import IndexCost, retriever_cost
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.judged_queries import judged_queries
from search.presentation.report import Histogram, Report, report_html, save_frontier, write_pictures, write_report
from search.ranking import QueryCost, ScoredDocument

HOSTILE = '</script><script>alert("1")</script><img src="http://evil.example/x"> & \u2028 @data@ @body@'
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Reader(HTMLParser):
    """Reads a page as a browser would, minding that what opens also closes."""

    def __init__(self):
        super().__init__()
        self.open, self.references, self.tags, self.texts, self.inside = [], [], [], [], {}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.references += [value for name, value in attrs if name in {"src", "href", "action", "srcset", "data"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        self.inside.setdefault(self.open[-1] if self.open else "", []).append(data)


def ranking(rank):
    return [ScoredDocument("r" if place == rank else f"x{place}", -place) for place in range(1, rank + 1)]


def evaluation(rows=("bm25", "b<i>d"), queries=40, costs=True):
    rng = np.random.default_rng(0)
    qrels = {f"q{number}": {"r": 1} for number in range(queries)}
    texts = {query: f"what is {query}" for query in qrels} | {"q0": HOSTILE}
    runs = {
        name: {query: ranking(int(rng.integers(1, 5 + place))) for query in qrels} for place, name in enumerate(rows)
    }
    runs[rows[0]]["q0"], runs[rows[-1]]["q0"] = ranking(1), []
    known = {
        name: retriever_cost([QueryCost(place, place + 1)], IndexCost(10 + place, 100 + place, 50), price_per_hour=1)
        for place, name in enumerate(rows)
    }
    return runs, evaluate(
        runs,
        judged_queries(qrels, texts),
        measures="RR,nDCG@10",
        costs=known if costs else {},
        collection={"name": "mine & <yours>", "documents": 1234},
        statistics=Statistics(200, 200),
    )


def whole():
    runs, evaluated = evaluation()
    return Report(
        evaluated,
        runs,
        marks={"q0": ["unknown words"], "q1": ["<mark>"]},
        spectra={"b<i>d": [3.0, 1.0, 0.1, 1e-18]},
        cosines={"b<i>d": Histogram([-1, 0, 1], [10, 30])},
        provenance={"model": "abc <123>"},
    )


@pytest.fixture(scope="module")
def page():
    """The page with everything on it, read."""
    html = report_html(whole())
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return html, reader


def test_nothing_on_the_page_asks_the_network(page):
    html, reader = page
    assert set(reader.references) == {"data:,"}
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", html)
    policy = next(attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_names_and_texts_are_escaped_wherever_they_stand(page):
    html, reader = page
    assert [tag for tag, _ in reader.tags].count("script") == 2
    assert not any(tag in {"i", "yours", "img", "mark"} for tag, _ in reader.tags)
    assert "".join(reader.inside["h1"]) == "twindex: mine & <yours>"
    assert HOSTILE not in html
    assert any(HOSTILE in text for text in reader.texts)


def test_the_scores_behind_the_points_are_the_evaluations(page):
    _, reader = page
    data = json.loads(reader.inside["script"][0], parse_constant=pytest.fail)
    evaluated = whole().evaluation
    assert data["rows"] == ["bm25", "b<i>d"]
    assert data["measures"] == ["RR", "nDCG@10", "Judged@10"]
    assert data["queries"][0] == ["q0", HOSTILE, ["unknown words"]]
    assert data["scores"][0][1][5] == pytest.approx(evaluated.rows["b<i>d"].per_query["RR"]["q5"], abs=1e-5)
    best = max(evaluated.rows.values(), key=lambda row: row.measures["RR"]).name
    assert data["rows"][data["y"]] == best
    assert data["x"] != data["y"]


def test_tables_hold_means_intervals_differences_and_costs(page):
    html, _ = page
    evaluated = whole().evaluation
    row = evaluated.rows["bm25"]
    assert f"{row.measures['RR']:.4f}" in html
    assert f"{row.intervals['RR'].low:.3f} to {row.intervals['RR'].high:.3f}" in html
    assert f"{evaluated.rows['b<i>d'].versus['RR'].mean:+.4f}" in html
    for words in (
        "bytes a text",
        "price, million queries",
        "unknown words",
        "seed",
        "abc &lt;123&gt;",
        "1,234 documents",
    ):
        assert words in html


def test_every_picture_is_there_and_is_well_formed(page, tmp_path):
    html, _ = page
    for svg in re.findall(r"<svg xmlns.*?</svg>", html, re.DOTALL):
        ET.fromstring(svg)
    written = write_pictures(whole(), tmp_path / "pictures")
    assert [path.name for path in written] == [
        "frontier-query_ms_p50.svg",
        "frontier-bytes_per_text.svg",
        "frontier-index_seconds.svg",
        "precision-recall.svg",
        "spectra.svg",
        "cosines.svg",
    ]
    for path in written:
        root = ET.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "font" in root[0].text


def test_a_page_of_one_row_without_costs_or_judged_texts_is_whole():
    runs, evaluated = evaluation(rows=("only",), queries=3, costs=False)
    reader = Reader()
    reader.feed(report_html(Report(evaluated, runs)))
    assert reader.open == []
    text = " ".join(reader.texts)
    assert "There is one row" in text
    assert "No cost was measured" in text
    assert "3 judged queries cannot tell" in text


def test_a_row_that_finds_nothing_and_rows_that_are_alike_are_drawn():
    qrels = {f"q{number}": {"r": 1} for number in range(31)}
    evaluated = evaluate({"a": {}, "b": {}}, judged_queries(qrels), statistics=Statistics(50, 50))
    assert "No row does better or worse" in report_html(Report(evaluated, {"a": {}, "b": {}}))


def test_the_page_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "report.html"
    write_report(whole(), path)
    assert path.read_text(encoding="utf-8") == report_html(whole())
    assert [found.name for found in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(RunFileError, match="can be written to"):
        write_report(whole(), tmp_path / "none" / "report.html")


def test_the_frontier_is_a_picture_of_its_own(tmp_path):
    _, evaluated = evaluation()
    save_frontier(evaluated, tmp_path / "f.svg")
    assert "bm25" in (tmp_path / "f.svg").read_text(encoding="utf-8")
    save_frontier(evaluated, tmp_path / "f.png", "bytes_per_text")
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(RunFileError, match=r"\.svg or \.png"):
        save_frontier(evaluated, tmp_path / "f.gif")
    with pytest.raises(RunFileError, match="nothing to draw"):
        save_frontier(evaluation(costs=False)[1], tmp_path / "f.svg")
