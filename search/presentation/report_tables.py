"""The tables of the report, as HTML; every name and text is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from search.evaluation.cost import engineering
from search.evaluation.evaluation import Evaluation, Row
from search.evaluation.marks import disagreement, means_by_mark

#: Heading, name in a cost's JSON, form.
_COSTS = (
    ("encode ms", "encode_ms_p50", "{:.2f}", ("encode_ms_p95", "encode_ms_p99")),
    ("search ms", "search_ms_p50", "{:.2f}", ("search_ms_p95", "search_ms_p99")),
    ("bytes a text", "bytes_per_text", "{:,.0f}", ()),
    ("index s", "index_seconds", "{:,.1f}", ()),
    ("peak MiB", "peak_memory_bytes", "{:,.0f}", ()),
    ("tokens", "tokens", "{:,.0f}", ()),
    ("multiply-adds a text", "multiply_adds_per_text", "", ()),
    ("recall@10 of the search", "search_recall@10", "{:.3f}", ()),
    ("price, million texts", "money_per_million_texts", "{:,.2f}", ()),
    ("price, million queries", "money_per_million_queries", "{:,.2f}", ()),
)
_MIB = 1024.0**2


def quality_table(evaluation: Evaluation) -> str:
    """Return rows of means with their intervals and the letters of the rows that each beats."""
    names = [measure.name for measure in evaluation.measures]
    best = {name: max(row.measures[name] for row in evaluation.rows.values()) for name in names}
    rows = []
    for number, row in enumerate(evaluation.rows.values()):
        cells = [row_heading(row, number)]
        for name in names:
            interval = row.intervals.get(name)
            ends = f"<small>{interval.low:.3f} to {interval.high:.3f}</small>" if interval else ""
            letters = evaluation.letters(row.name, name)
            told = f"<sup>{escape(letters)}</sup>" if letters else ""
            leads = row.measures[name] == best[name] and name in row.intervals
            mark = ' class="best"' if leads and len(evaluation.rows) > 1 else ""
            cells.append(f"<td{mark}>{row.measures[name]:.4f}{told}{ends}</td>")
        rows.append((row, "".join(cells)))
    headings = [f'<abbr title="computed by {escape(m.provider)}">{escape(m.name)}</abbr>' for m in evaluation.measures]
    return _table(["", *headings], [_tr(row, cells) for row, cells in rows])


def cost_table(evaluation: Evaluation) -> str:
    """Return rows of costs; a column that no row knows is left out."""
    values = {row.name: row.cost.to_json() for row in evaluation.rows.values()}
    columns = [cost for cost in _COSTS if any(known.get(cost[1]) is not None for known in values.values())]
    if not any("approximation" in known for known in values.values()):
        columns = [cost for cost in columns if cost[1] != "search_recall@10"]
    if not columns:
        return "<p>No cost was measured.</p>"
    rows = []
    for number, row in enumerate(evaluation.rows.values()):
        known = values[row.name]
        cells = [row_heading(row, number)]
        for _, name, form, tail in columns:
            value = known.get(name)
            shown = value / _MIB if value is not None and name == "peak_memory_bytes" else value
            cell = engineering(shown) if shown is None or not form else form.format(shown)
            tails = [form.format(ms) for percentile in tail if (ms := known.get(percentile)) is not None]
            cell = "-" if tail and value == 0 else cell
            small = f"<small>p95 {tails[0]}, p99 {tails[1]}</small>" if len(tails) == 2 and cell != "-" else ""
            cells.append(f"<td>{cell}{small}</td>")
        cells.append(f"<td>{escape(', '.join(row.dominated_by)) or 'on the frontier'}</td>")
        rows.append(_tr(row, "".join(cells)))
    return _table(["", *(heading for heading, *_ in columns), "dominated by"], rows)


def versus_table(evaluation: Evaluation) -> str:
    """Return differences from the baseline on the first measure, with what chance has to say."""
    measure = evaluation.primary
    rows = []
    for number, row in enumerate(evaluation.rows.values()):
        difference = row.versus.get(measure)
        if difference is None:
            continue
        low, high = difference.interval
        wins, ties, losses = difference.outcomes
        cells = (
            f"<td>{difference.mean:+.4f}<small>{low:+.3f} to {high:+.3f}</small></td>"
            f"<td>{_p(difference.p)}</td><td>{_p(difference.corrected_p)}</td>"
            f"<td>{wins} / {ties} / {losses}</td>"
        )
        rows.append(_tr(row, row_heading(row, number) + cells))
    if not rows:
        return "<p>There is no row to compare with the baseline.</p>"
    heading = f"{escape(measure)} less {escape(evaluation.baseline)}'s"
    return _table(["", heading, "p", "p, Holm", "wins / ties / losses"], rows)


def disagreement_table(
    evaluation: Evaluation, marks: Mapping[str, Sequence[str]], most: int, known: Mapping[str, str]
) -> str:
    """Return the queries on which rows lie farthest apart, each row's score, and the queries' marks."""
    scores = {row.name: row.per_query for row in evaluation.rows.values()}
    measure = evaluation.primary
    rows = []
    for query, spread in disagreement(scores, measure)[:most]:
        if spread <= 1e-9:
            break
        text = known.get(query, "")
        labels = "".join(f'<span class="mark">{escape(mark)}</span>' for mark in marks.get(query, ()))
        cells = f'<td class="text"><span class="soft">{escape(query)}</span> {escape(text)} {labels}</td>'
        rows.append(f"<tr>{cells}{_heat(values[measure][query] for values in scores.values())}</tr>")
    if not rows:
        return "<p>No row does better or worse on one query than on another.</p>"
    return _table(["query", *(escape(name) for name in scores)], rows)


def marks_table(evaluation: Evaluation, marks: Mapping[str, Sequence[str]]) -> str:
    """Return each row's mean over the queries that bear a mark, and over those without any."""
    scores = {row.name: row.per_query for row in evaluation.rows.values()}
    rows = []
    for mark, (count, means) in means_by_mark(scores, evaluation.primary, marks).items():
        label = escape(mark) if mark else '<span class="soft">no mark</span>'
        rows.append(f"<tr><td>{label}</td><td>{count:,}</td>{_heat(means.values())}</tr>")
    return _table(["mark", "queries", *(escape(name) for name in scores)], rows)


def row_heading(row: Row, number: int) -> str:
    """Return a row's first cell: colour, letter, name."""
    return (
        f'<th scope="row" class="text"><span class="s{number % 8}"><span class="swatch"></span></span>'
        f'<span class="soft">{escape(row.letter)}</span> {escape(row.name)}</th>'
    )


def definitions(pairs: Mapping[str, str]) -> str:
    """Return names and what they stand for."""
    return "<dl>" + "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in pairs.items()) + "</dl>"


def _tr(row: Row, cells: str) -> str:
    return f'<tr class="dominated">{cells}</tr>' if row.dominated_by else f"<tr>{cells}</tr>"


def _heat(values: Iterable[float]) -> str:
    return "".join(f'<td class="heat" style="--v:{min(1.0, max(0.0, value)):.2f}">{value:.3f}</td>' for value in values)


def _table(headings: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"
