"""Values to what a terminal shows. The only importer of rich outside the command line."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from corpora.progress import Progress
from search.asking import Asked, Quality
from search.evaluation.evaluation import Evaluation
from search.evaluation.overlap import overlap, rank_biased_overlap
from search.judging_session import PutQuestion
from search.presentation.evaluation_tables import evaluation_rows, versus_rows
from search.presentation.snippets import snippet, word_spans
from search.ranking import Hit
from search.retrieval.searcher import Answer, Comparison

#: Told apart on dark and light grounds alike; documents beyond these stay plain.
COLOURS = (
    "cyan",
    "magenta",
    "yellow",
    "green",
    "blue",
    "red",
    "bright_cyan",
    "bright_magenta",
    "bright_green",
)
_RELEVANT = "✓"


class _Rate(ProgressColumn):
    """Units per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} {task.fields.get('unit', '')}/s", style="dim")


class TerminalProgress:
    """Draws bars on a terminal's standard error; says nothing of progress anywhere else."""

    def __init__(self, console: Console) -> None:
        """Draw on the given console."""
        self._console = console
        self._task: TaskID | None = None
        self._bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _Rate(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )

    def __enter__(self) -> Self:
        """Start drawing."""
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal clean."""
        self._bars.stop()

    def start(self, task: str, total: int | None, unit: str) -> None:
        """Show a new bar."""
        self._task = self._bars.add_task(task, total=total, unit=unit)

    def advance(self, amount: int = 1) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bars.advance(self._task, amount)

    def finish(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None

    def note(self, message: str) -> None:
        """Print a line above the bars."""
        self._console.print(Text(f"note: {message}", style="yellow"), soft_wrap=True)


@contextmanager
def progress_on(console: Console) -> Iterator[Progress]:
    """Give a Progress that draws while the block runs."""
    with TerminalProgress(console) as progress:
        yield progress


def comparison_view(asked: Asked, *, shown: int = 10) -> Group:
    """Return the answers side by side: ranks, then what each cost and how good it was, then the documents."""
    colours = _colours(asked.comparison)
    parts: list[RenderableType] = [_side_by_side(asked, colours)]
    if len(asked.comparison.answers) > 1:
        parts.append(_agreement(asked.comparison, shown))
    parts.append(_documents(asked, colours))
    return Group(*parts)


def _colours(comparison: Comparison) -> dict[str, str]:
    order: dict[str, int] = {}
    for answer in comparison.answers.values():
        for hit in answer.hits:
            order[hit.doc_id] = order.get(hit.doc_id, 0) + 1
    # Documents that several retrievers found get the colours first: those are the ones to follow with the eye.
    by_count = sorted(order, key=lambda doc_id: -order[doc_id])
    return {doc_id: COLOURS[i] if i < len(COLOURS) else "default" for i, doc_id in enumerate(by_count)}


def _side_by_side(asked: Asked, colours: Mapping[str, str]) -> Table:
    comparison, relevant = asked.comparison, asked.relevant
    table = Table(title=Text(f"“{comparison.query}”"), title_justify="left", show_footer=False, expand=False)
    table.add_column("rank", justify="right", no_wrap=True)
    for name in comparison.answers:
        table.add_column(Text(name), no_wrap=True, overflow="ellipsis")
    most = max((len(answer.hits) for answer in comparison.answers.values()), default=0)
    for place in range(most):
        cells = []
        for answer in comparison.answers.values():
            if place >= len(answer.hits):
                cells.append(Text(""))
                continue
            hit = answer.hits[place]
            mark = f"{_RELEVANT} " if hit.doc_id in relevant else ""
            cells.append(Text(f"{mark}{hit.doc_id} ", style=colours[hit.doc_id]) + Text(_score(hit.score), style="dim"))
        table.add_row(str(place + 1), *cells, end_section=place + 1 == most)
    if not most:
        table.add_row("", *("no hits" for _ in comparison.answers), end_section=True)
    for label, figures in _figures(asked):
        table.add_row(Text(label, style="dim"), *figures)
    return table


def _figures(asked: Asked) -> Iterator[tuple[str, list[str | Text]]]:
    answers: Mapping[str, Answer] = asked.comparison.answers
    qualities: Mapping[str, Quality] = asked.qualities or {}
    if asked.backgrounds:
        yield "percentile", [_percentiles(asked, name, answer) for name, answer in answers.items()]
    for measure in next(iter(qualities.values())).measures if qualities else ():
        yield measure, [Text(f"{qualities[name].measures[measure]:.3f}", style="bold") for name in answers]
    yield "encode", [_milliseconds(answer.cost.encode_ms) for answer in answers.values()]
    yield "search", [_milliseconds(answer.cost.search_ms) for answer in answers.values()]
    yield "stored", [f"{answer.bytes_per_text:,.0f} B/text" for answer in answers.values()]
    if any(answer.coverage for answer in answers.values()):
        yield "words", [_coverage(answer) for answer in answers.values()]


def _score(score: float) -> str:
    return f"{score:.3f}" if abs(score) < 10 else f"{score:.1f}"


def _percentiles(asked: Asked, name: str, answer: Answer) -> str:
    """Return where the first and the last score shown lie among those of random pairs of texts."""
    ends = dict.fromkeys(hit.rank for hit in (*answer.hits[:1], *answer.hits[-1:]))
    found = [asked.percentile(name, answer.hits[rank - 1].score) for rank in ends]
    return " to ".join(_percentile(each) for each in found if each is not None) or "-"


def _percentile(value: float) -> str:
    """Return a percentile, with more digits the rarer what lies above it."""
    return f"{value:.0f}" if value < 90.0 else f"{value:.1f}" if value < 99.9 else f"{value:.2f}"


def _milliseconds(value: float) -> str:
    return "-" if not value else f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"


def _coverage(answer: Answer) -> str:
    if answer.coverage is None:
        return "-"
    known, total = len(answer.coverage.known), len(answer.coverage.known) + len(answer.coverage.unknown)
    few = "; English text expected" if total > 1 and known * 2 < total else ""
    return f"{known} of {total} known{few}"


def _agreement(comparison: Comparison, shown: int) -> Table:
    """Return how far each pair of retrievers agrees: shared documents, and rank-biased overlap."""
    names = list(comparison.answers)
    table = Table(title="agreement: shared hits / rank-biased overlap (p = 0.9)", title_justify="left", box=None)
    table.add_column("")
    for name in names[1:]:
        table.add_column(Text(name), justify="right")
    rankings = {name: [hit.doc_id for hit in comparison.answers[name].hits] for name in names}
    for row, first in enumerate(names[:-1]):
        cells = ["" for _ in names[1 : row + 1]]
        for second in names[row + 1 :]:
            shared = overlap(rankings[first], rankings[second], shown)
            cells.append(f"{shared:.0%} / {rank_biased_overlap(rankings[first], rankings[second]):.2f}")
        table.add_row(Text(first), *cells)
    return table


def _documents(asked: Asked, colours: Mapping[str, str]) -> Table:
    """Return each document once: its rank in every column, and its passage where the words that decided stand."""
    answers = asked.comparison.answers
    ranks = {name: {hit.doc_id: hit.rank for hit in answer.hits} for name, answer in answers.items()}
    shown = _passages(asked)
    best = sorted(shown, key=lambda doc_id: sorted(r.get(doc_id, 10**6) for r in ranks.values()))
    table = Table(title="documents, and their rank in each column", title_justify="left", box=None, pad_edge=False)
    table.add_column("document", no_wrap=True, overflow="ellipsis", max_width=24)
    for name in answers:
        table.add_column(Text(name), justify="right", no_wrap=True, overflow="ellipsis", max_width=7)
    table.add_column("passage", ratio=1)
    for doc_id in best:
        hit, words = shown[doc_id]
        mark = f"{_RELEVANT} " if doc_id in asked.relevant else ""
        text = _underlined(f"{hit.title} - " if hit.title else "", words, "bold")
        text += _underlined(snippet(hit.passage.removeprefix(hit.title), words), words, "default")
        if hit.source:
            text += Text(f"  {_relative(hit.source)}", style="dim")
        cells = [str(ranks[name].get(doc_id, "·")) for name in answers]
        table.add_row(Text(mark + doc_id, style=colours[doc_id]), *cells, text)
    return table


def _passages(asked: Asked) -> dict[str, tuple[Hit, list[str]]]:
    """Return for each document the hit whose passage is shown, and the words that decided it wherever it was found.

    The passage is the first retriever's of those that say which words decided, else the first one's.
    """
    hits: dict[str, Hit] = {}
    words: dict[str, dict[str, None]] = {}
    telling = [name for name in asked.comparison.answers if name in asked.decisive]
    order = [*telling, *(name for name in asked.comparison.answers if name not in asked.decisive)]
    for name in order:
        for hit in asked.comparison.answers[name].hits:
            hits.setdefault(hit.doc_id, hit)
            found = asked.decisive.get(name, {}).get(hit.doc_id, ())
            words.setdefault(hit.doc_id, {}).update(dict.fromkeys(found))
    return {doc_id: (hit, list(words[doc_id])) for doc_id, hit in hits.items()}


def _underlined(text: str, words: Sequence[str], style: str) -> Text:
    shown = Text(text, style=style)
    for start, end in word_spans(text, words):
        shown.stylize("bold underline", start, end)
    return shown


def _relative(source: str) -> str:
    """Return a path as seen from the working folder, where it lies below it."""
    return source.removeprefix(f"{Path.cwd()}{os.sep}")


def evaluation_view(evaluation: Evaluation, title: str = "", notes: Iterable[str] | None = None) -> Group:
    """Return an evaluation as two tables, quality and cost of each row and what chance says of it, and its notes."""
    collection, count = evaluation.collection, evaluation.queries.count
    heading = title or f"{collection.get('name', '')}, {collection.get('split', '')}: {count:,} judged queries"
    faded = [place for place, row in enumerate(evaluation.rows.values()) if row.dominated_by]
    parts: list[RenderableType] = [table_view(list(evaluation_rows(evaluation)), heading, (), faded=faded)]
    versus = list(versus_rows(evaluation))
    if versus:
        level = f"{evaluation.statistics.confidence:.0%}"
        parts.append(table_view(versus, f"against {evaluation.baseline}, with {level} intervals", ()))
    lines = evaluation.notes() if notes is None else notes
    return Group(*parts, *(Text(note, style="dim") for note in lines))


def table_view(
    rows: Sequence[Mapping[str, Any]],
    title: str,
    notes: Iterable[str],
    *,
    faded: Collection[int] = (),
    left: Collection[str] = (),
) -> Group:
    """Return a table, each row mapping column titles to values, and notes below it.

    Some rows may be greyed; the first column begins on the left, and so do those named.
    """
    table = Table(title=Text(title), title_justify="left")
    columns = list(rows[0]) if rows else []
    for column in columns:
        table.add_column(
            Text(column),
            justify="left" if column == columns[0] or column in left else "right",
            no_wrap=column == columns[0],
            overflow="fold",
        )
    for place, row in enumerate(rows):
        table.add_row(*(Text(str(row[column])) for column in columns), style="dim" if place in faded else None)
    return Group(table, *(Text(note, style="dim") for note in notes))


def question_view(question: PutQuestion) -> Group:
    """Return a document to be judged for a query."""
    head = Text(f"\n[{question.judged + 1} of {question.total}] ", style="dim") + Text(
        question.query, style="bold cyan"
    )
    title = Text(question.title or question.doc_id, style="bold")
    if question.hint:
        head = Text(f"\n{question.hint}", style="yellow") + head
    return Group(head, title, Text(snippet(question.text, (), 1200)))


def key_values(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return a two-column table without lines."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for key, value in pairs:
        table.add_row(escape(key), Text(value))
    return table
