"""The report as a browser sees it: opened from a file, with no network, no console message, and its scatter drawn."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from search.evaluation.cost import IndexCost, retriever_cost
from search.evaluation.evaluate import evaluate
from search.evaluation.evaluation import Statistics
from search.evaluation.judged_queries import judged_queries
from search.presentation.report import Histogram, Report, write_report
from search.ranking import QueryCost, ScoredDocument

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
pytestmark = pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")


def _report(path: Path) -> None:
    rng = np.random.default_rng(3)
    qrels = {f"q{number}": {"r": 1} for number in range(60)}
    runs = {
        name: {
            query: [ScoredDocument("r" if place == hit else f"x{place}", -place) for place in range(1, 9)]
            for query in qrels
            for hit in [int(rng.integers(1, spread))]
        }
        for name, spread in (("bm25", 9), ("static", 12), ("contextual", 4))
    }
    costs = {
        name: retriever_cost(
            [QueryCost(place, 1.0)], IndexCost(10 + place, 100 + place, 50, multiply_adds_per_text=10.0**place)
        )
        for place, name in enumerate(runs)
    }
    texts = {query: f"<b>what</b> is {query}" for query in qrels}
    evaluation = evaluate(runs, judged_queries(qrels, texts), costs=costs, statistics=Statistics(200, 200))
    spaces = {name: [3.0, 1.0, 0.5] for name in ("static", "contextual")}
    histograms = {name: Histogram([-1.0, 0.0, 1.0], [0.4, 0.6]) for name in spaces}
    write_report(Report(evaluation, runs, spectra=spaces, cosines=histograms), path)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, list[str]]:
    """The page's DOM after its scripts ran, what the browser wrote about its console, and the URLs it asked for."""
    folder = tmp_path_factory.mktemp("browser")
    page, log = folder / "report.html", folder / "net.json"
    _report(page)
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--no-first-run",
        # What the browser itself would ask for goes nowhere.
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        "--enable-logging=stderr",
        f"--log-net-log={log}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr[-2000:]
    urls = re.findall(r'"url":"([^"]+)"', log.read_text(encoding="utf-8", errors="replace"))
    return done.stdout, done.stderr, urls


def test_nothing_is_asked_of_the_network_and_the_console_stays_empty(opened: tuple[str, str, list[str]]) -> None:
    _, messages, urls = opened
    assert not [line for line in messages.splitlines() if "CONSOLE" in line]
    # The browser itself may look for updates and the like; the page is the one file.
    own = {"chrome:", "chrome-extension:", "data:", "file:"}
    browsers = re.compile(r"https?://([\w.-]+\.)?(google|googleapis|gstatic|gvt1|chromium)\.")
    assert not [url for url in urls if f"{url.split(':')[0]}:" not in own and not browsers.match(url)]


def test_the_scatter_is_drawn_with_the_queries_behind_its_points(opened: tuple[str, str, list[str]]) -> None:
    dom, _, _ = opened
    scatter = dom[dom.index('id="scatter"') :]
    assert scatter.count("<circle") > 3
    assert "scores higher on" in scatter
    assert "&lt;b&gt;what&lt;/b&gt; is q" in scatter
    data = json.loads(dom[dom.index('id="data">') + len('id="data">') :].split("</script>")[0])
    assert data["rows"] == ["bm25", "static", "contextual"]
