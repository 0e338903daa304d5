"""What a build did and what an index holds, as rows and as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from indexer.build import BuildSummary
from indexer.opening import OpenIndex
from search.evaluation.cost import engineering


def build_json(summary: BuildSummary) -> dict[str, Any]:
    """Return a build's summary as JSON values."""
    manifest = summary.manifest
    return {
        "collection": manifest.collection,
        "documents": manifest.documents,
        "passages": manifest.passages,
        "texts": manifest.texts,
        "over_budget": summary.over_budget,
        "cut": summary.cut,
        "read": asdict(summary.read),
        "retrievers": [record.name for record in manifest.retrievers],
        "cost": {name: asdict(cost) for name, cost in summary.costs.items()},
        "notes": list(summary.notes),
    }


def build_lines(summary: BuildSummary, target: Path) -> Iterator[str]:
    """Yield what a user should read after a build."""
    manifest = summary.manifest
    yield from summary.read.lines()
    texts = "" if manifest.texts == manifest.passages else f", {manifest.texts:,} of them different"
    yield f"{manifest.documents:,} documents in {manifest.passages:,} passages{texts}"
    if summary.cut:
        yield f"{summary.cut:,} texts ({summary.cut / manifest.documents:.0%}) are longer than the window and were cut"
    elif summary.over_budget:
        share = summary.over_budget / manifest.documents
        yield f"{summary.over_budget:,} texts ({share:.0%}) are longer than one window; each scores as its best passage"
    yield f"index: {target}   next: twindex query {target}   twindex evaluate {target}   twindex info {target}"


def cost_rows(costs: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return a row for each thing that building took, for a table."""
    rows = []
    reused = any(cost.get("reused_seconds") for cost in costs.values())
    for name, cost in costs.items():
        texts, multiply_adds = int(cost["texts"]), cost.get("multiply_adds")
        seconds, before = float(cost["seconds"]), float(cost.get("reused_seconds", 0.0))
        rows.append(
            {
                "retriever": name,
                "seconds": f"{seconds:.1f}",
                **({"by earlier builds": f"{before:.1f}" if before else "-"} if reused else {}),
                "texts/s": f"{texts / (seconds + before):,.0f}" if texts and seconds + before else "-",
                "tokens": f"{int(cost['tokens']):,}" if cost["tokens"] else "-",
                "multiply-adds/text": engineering(None if multiply_adds is None else multiply_adds / max(1, texts)),
                "bytes": size(int(cost["bytes"])) if cost["bytes"] else "-",
                "peak memory": size(int(cost["peak_memory_bytes"])) if cost["peak_memory_bytes"] else "-",
            }
        )
    return rows


def size(count: float) -> str:
    """Return a number of bytes for people."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def info_json(index: OpenIndex) -> dict[str, Any]:
    """Return what an index holds and cost as JSON values."""
    return {"manifest": asdict(index.manifest), "checks": dict(index.checks), "cost": dict(index.cost)}


def info_pairs(index: OpenIndex) -> Iterator[tuple[str, str]]:
    """Yield what an index holds as (what, value)."""
    manifest, checks = index.manifest, index.checks
    yield "index", f"{index.root} ({index.generation.root.name}, format {manifest.format_version})"
    yield "collection", f"{manifest.collection} ({manifest.fingerprint[:12]})"
    yield (
        "documents",
        f"{manifest.documents:,} in {manifest.passages:,} passages, {manifest.texts:,} different texts",
    )
    window = manifest.window
    kind = "one passage a document, cut" if window["whole"] else f"overlap {window['overlap']}"
    yield "window", f"{window['budget']} word pieces, {kind}"
    yield (
        "longer than it",
        f"{checks['over_budget']:,} documents" + (f", {checks['cut']:,} cut" if checks["cut"] else ""),
    )
    yield "size", size(sum(int(entry["bytes"]) for entry in checks["files"].values()))
    for record in manifest.retrievers:
        yield (
            record.name,
            _record_line(record.spec.notation(), record.model, checks["retrievers"].get(record.name, {})),
        )


def _record_line(notation: str, model: str, findings: Mapping[str, Any]) -> str:
    parts = [notation, model]
    if gate := findings.get("gate"):
        parts.append(f"{gate['used']}, cosine to the reference at least {gate['smallest_cosine']:.4f}")
    if whitening := findings.get("whitening"):
        parts.append(f"whitened with e = {whitening['shrinkage']:.3f} (mean cosine was {whitening['anisotropy']:.3f})")
    approximation = findings.get("approximation", {})
    if "recall@10" in approximation:
        most = approximation["most_effort"]
        effort = f", {approximation['effort']} of {most} looked at" if most else ""
        parts.append(
            f"{approximation['factory']}{effort}: recall@10 {approximation['recall@10']:.3f} of exact search"
            f" (measured on {approximation['queries']} runs of words from its texts)"
        )
    if findings.get("statistics", {}).get("added"):
        statistics = findings["statistics"]
        parts.append(f"statistics of {statistics['texts']:,} texts, {statistics['added']:,} have come since")
    return "; ".join(part for part in parts if part)
