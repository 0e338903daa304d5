"""An evaluation as rows for a terminal's tables: quality and cost, and what chance has to say."""

from collections.abc import Iterator, Mapping

from search.evaluation.cost import RetrieverCost, engineering
from search.evaluation.evaluation import Evaluation


def evaluation_rows(evaluation: Evaluation) -> Iterator[dict[str, str]]:
    """Yield a row a retriever for a table: measures with letters, then costs."""
    for row in evaluation.rows.values():
        cells: dict[str, str] = {"": f"{row.letter} {row.name}" + ("  (dominated)" if row.dominated_by else "")}
        for measure in evaluation.measures:
            letters = evaluation.letters(row.name, measure.name)
            cells[measure.name] = f"{row.measures[measure.name]:.4f}" + (f" {letters}" if letters else "")
        yield {**cells, **_cost_cells(row.cost)}


def _cost_cells(cost: RetrieverCost) -> Mapping[str, str]:
    values = cost.to_json()

    def shown(name: str, form: str) -> str:
        return form.format(values[name]) if values.get(name) else "-"

    return {
        "encode ms": shown("encode_ms_p50", "{:.2f}"),
        "search ms": shown("search_ms_p50", "{:.2f}"),
        "bytes/text": shown("bytes_per_text", "{:,.0f}"),
        "multiply-adds": engineering(values.get("multiply_adds_per_text")),
        "index s": shown("index_seconds", "{:.1f}"),
        **{
            label: shown(name, "{:.2f}")
            for label, name in (
                ("per million texts", "money_per_million_texts"),
                ("per million queries", "money_per_million_queries"),
            )
            if cost.price_per_hour is not None
        },
    }


def versus_rows(evaluation: Evaluation) -> Iterator[dict[str, str]]:
    """Yield a row for each retriever but the baseline: the first measure with its interval, and its difference."""
    measure = evaluation.primary
    for row in evaluation.rows.values():
        difference = row.versus.get(measure)
        if difference is None:
            continue
        own, apart = row.intervals[measure], difference.interval
        yield {
            "": f"{row.letter} {row.name}",
            measure: f"{row.measures[measure]:.3f} ({own.low:.3f} to {own.high:.3f})",
            f"less {evaluation.baseline}'s": f"{difference.mean:+.3f} ({apart.low:+.3f} to {apart.high:+.3f})",
            "p, Holm": "< .0001" if difference.corrected_p < 0.0001 else f"{difference.corrected_p:.4f}".lstrip("0"),
            "better / same / worse": " / ".join(f"{count:,}" for count in difference.outcomes),
        }
