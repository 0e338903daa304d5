"""What a collection is like, before paying for an index, as rows and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from corpora.survey import Lengths, Survey
from indexer.estimate import Estimate
from search.presentation.summaries import size


def survey_json(survey: Survey, estimates: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return a survey and its estimates as JSON values."""
    return {**asdict(survey), "estimates": {name: asdict(found) for name, found in estimates.items()}}


def survey_pairs(survey: Survey) -> Iterator[tuple[str, str]]:
    """Yield what a collection is like as (what, value)."""
    yield "collection", f"{survey.name} ({survey.source})"
    yield "documents", f"{survey.documents:,}, {survey.titled:,} with a title, {survey.empty:,} empty"
    yield "words", _lengths(survey.words)
    yield "characters", _lengths(survey.characters)
    yield "repeated texts", f"{survey.repeated_texts:,} equal to an earlier one"
    if survey.languages:
        yield "languages", ", ".join(f"{language} {share:.0%}" for language, share in survey.languages[:5])
    if survey.over_window is not None:
        yield (
            "longer than the model's window",
            f"{survey.over_window.share:.0%} of {survey.over_window.of:,} sampled",
        )
    if survey.known_words is not None:
        few = "; English text expected" if survey.known_words.share < 0.5 else ""
        yield (
            "words known to GloVe",
            f"{survey.known_words.share:.0%} of {survey.known_words.of:,} sampled{few}",
        )
    if survey.metadata:
        yield "metadata", ", ".join(f"{field} ({count:,})" for field, count in survey.metadata[:8])
    yield "queries", f"{survey.queries:,}"
    for split in survey.splits:
        grades = ", ".join(f"{grade}: {count:,}" for grade, count in split.grades)
        relevant = f"{split.relevant_per_query:.1f} relevant each"
        counts = f"{split.judgements:,} for {split.queries:,} queries, {relevant}; grades {grades}"
        yield f"judgements ({split.name})", counts
        yield from ((f"gap ({split.name})", line) for line in split.gaps.lines())
    if survey.background:
        yield "background texts", f"{survey.background:,}, for statistics only"
    yield from (("read", line) for line in survey.summary.lines()[1:])
    yield from (("note", note) for note in survey.notes)


def _lengths(lengths: Lengths) -> str:
    return (
        f"{lengths.total:,} in all; a document has {lengths.least:,} to {lengths.most:,},"
        f" median {lengths.median:,.0f}, 90% between {lengths.p5:,.0f} and {lengths.p95:,.0f}"
    )


def estimate_rows(estimates: Mapping[str, Estimate]) -> list[dict[str, str]]:
    """Return a row a retriever: about how long it would take, and how large it would be."""
    return [
        {"retriever": name, "about": _duration(found.seconds), "size": size(found.bytes)}
        for name, found in estimates.items()
    ]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
