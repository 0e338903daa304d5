"""The pipeline: a collection becomes an index.

Read once into the document store; cut into passages; index the stems in a process of their own; encode the
distinct texts once for each encoder; whiten; fill a FAISS index for each retriever; write down what was done
and what it cost; publish all of it at one instant.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from corpora.collection import Collection
from corpora.passages import Window
from corpora.progress import Progress
from corpora.read_log import ReadLog, ReadSummary
from indexer import judgement_files
from indexer.accounting import earlier_peak, kept_seconds, lexical_cost
from indexer.cost import Cost, CostMeter
from indexer.errors import IndexBusyError
from indexer.filling import Filled, factory_of, fill
from indexer.layout import GenerationLayout, IndexLayout, write_json
from indexer.lexical_build import LexicalBuild
from indexer.manifest import Manifest, RetrieverRecord, file_digests, save_checks
from indexer.preparation import Prepared, note_drift, prepare
from indexer.prior import Prior
from indexer.publication import new_generation, writing
from indexer.spec import Family, RetrieverSpec
from indexer.staging import Staged, stage
from indexer.stores.documents import DocumentStore
from indexer.stores.vector import check_factory
from indexer.workshop import Workshop

DEFAULT_WINDOW = 256
DEFAULT_OVERLAP = 32


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """What `twindex index` was asked for.

    Attributes
    ----------
    retrievers
        The retrievers, a hybrid's members among them.
    window
        Word pieces a passage may have, special tokens counted; at most what the model reads. None: `--window off`.
    overlap
        Word pieces that neighbouring passages share.
    limit
        Read only so many documents.
    refit
        Make statistics (idf, whitening, fitted tables) anew where an earlier build of the index left some.
    exact_window
        How to cut, in place of the four above: as an earlier build did.
    base
        The generation that must be the live one: what the collection was revised from.
    """

    retrievers: tuple[RetrieverSpec, ...]
    window: int | None = DEFAULT_WINDOW
    overlap: int = DEFAULT_OVERLAP
    title_prefix: bool = True
    limit: int | None = None
    trust_pickle: bool = False
    refit: bool = False
    exact_window: Window | None = None
    base: str = ""


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build did: the manifest, what was read, cost by retriever, and lines worth reading."""

    manifest: Manifest
    read: ReadSummary
    costs: Mapping[str, Cost]
    over_budget: int
    cut: int
    notes: tuple[str, ...] = field(default=())


def build_index(
    collection: Collection,
    root: Path,
    settings: BuildSettings,
    *,
    progress: Progress,
    log: ReadLog | None = None,
) -> BuildSummary:
    """Build an index of a collection in a folder, over whatever index it held.

    Raises
    ------
    CorpusError
        If the collection cannot be read.
    IndexerError
        If a model, a notation or the folder cannot be used.
    """
    for spec in settings.retrievers:
        if factory_of(spec):
            check_factory(factory_of(spec))
    layout = IndexLayout(root)
    log = log or ReadLog()
    meter = CostMeter()
    with writing(layout) as stale:
        prior = Prior.find(layout)
        if settings.base and (prior is None or prior.generation.root.name != settings.base):
            message = f"{root} was indexed again by somebody else in the meantime; run the command again"
            raise IndexBusyError(message)
        workshop = Workshop(layout.workshop, settings.retrievers, progress, trust_pickle=settings.trust_pickle)
        if stale:
            workshop.note(stale)
        try:
            with new_generation(layout) as generation:
                manifest, staged = _fill(generation, collection, settings, workshop, prior, meter, log)
        finally:
            if prior is not None:
                prior.close()
        workshop.clear_up()
    return BuildSummary(
        manifest, log.summary(), dict(meter.costs), staged.over_budget, staged.cut, tuple(workshop.notes)
    )


def _fill(
    generation: GenerationLayout,
    collection: Collection,
    settings: BuildSettings,
    workshop: Workshop,
    prior: Prior | None,
    meter: CostMeter,
    log: ReadLog,
) -> tuple[Manifest, Staged]:
    """Write everything that a generation holds."""
    window = _window(settings, workshop)
    with meter.measure("reading"):
        staged = stage(
            collection,
            generation.documents,
            window,
            workshop.piece_offsets,
            limit=settings.limit,
            known=workshop.known_cuts(prior, window),
            log=log,
            progress=workshop.progress,
        )
    documents = DocumentStore(generation.documents)
    workshop.begin(documents, collection, prior, refit=settings.refit)
    lexical = LexicalBuild.start(generation, prior) if _has(settings, Family.BM25) else None
    try:
        records, checks = _build_vectors(settings, generation, workshop, meter)
        if lexical is not None:
            cost = lexical.finish(workshop.progress, documents.documents)
            meter.add("bm25", lexical_cost(cost, documents.documents, prior, "bm25"))
    finally:
        if lexical is not None:
            lexical.stop()
    judgement_files.save(collection, generation.judgements)
    manifest = _manifest(collection, staged, window, documents, records)
    documents.close()
    _write_down(generation, manifest, meter, staged, checks)
    return manifest, staged


def _has(settings: BuildSettings, family: Family) -> bool:
    return any(spec.family is family for spec in settings.retrievers)


def _window(settings: BuildSettings, workshop: Workshop) -> Window:
    """Return the window in pieces of text: what the model reads less its special tokens."""
    if settings.exact_window is not None:
        return settings.exact_window
    most = workshop.piece_budget
    if settings.window is None:
        return Window(most, whole=True)
    budget = min(most, max(1, settings.window - workshop.special_tokens))
    return Window(budget, min(settings.overlap, budget - 1), title_prefix=settings.title_prefix)


def _build_vectors(
    settings: BuildSettings, generation: GenerationLayout, workshop: Workshop, meter: CostMeter
) -> tuple[list[RetrieverRecord], dict[str, Any]]:
    records: list[RetrieverRecord] = []
    checks: dict[str, Any] = {}
    for spec in settings.retrievers:
        record = RetrieverRecord(spec.name, spec.family, dict(sorted(spec.options.items())))
        if record.has_vectors:
            layout = generation.retriever(spec.name)
            layout.root.mkdir()
            started = time.perf_counter()
            with meter.measure(spec.name):
                prepared = prepare(spec, workshop)
                preparing = time.perf_counter() - started
                filled = fill(prepared, spec, layout, workshop)
            meter.add(spec.name, replace(prepared.earlier, texts=0, tokens=0, multiply_adds=None))
            held = Cost(
                texts=filled.texts,
                tokens=prepared.load.tokens,
                bytes=layout.vectors.stat().st_size,
                multiply_adds=prepared.load.multiply_adds,
            )
            reused = _reused(prepared, filled, preparing, workshop)
            if reused.reused_seconds:
                reused = replace(reused, peak_memory_bytes=earlier_peak(spec.name, workshop))
            meter.add(spec.name, held + reused)
            fresh = {"texts": workshop.documents.texts, "added": 0}
            checks[spec.name] = {"statistics": fresh, **prepared.findings, **filled.findings}
            record = replace(
                record,
                encoder=prepared.encoder.fingerprint,
                whitening=filled.whitening,
                factory=filled.factory,
                dimension=filled.dimension,
                model=prepared.model,
            )
        records.append(record)
    note_drift(checks, workshop)
    return records, checks


def _reused(prepared: Prepared, filled: Filled, preparing_seconds: float, workshop: Workshop) -> Cost:
    """Return what earlier builds took for what this one took over, and all seconds that are in an encoder made here."""
    if prepared.kept is not None and workshop.frozen is not None:
        encoder, vectors = kept_seconds(prepared.kept, workshop.frozen, workshop, vectors=filled.taken_over)
        return Cost(reused_seconds=encoder + vectors, encoder_seconds=encoder)
    made = preparing_seconds + prepared.earlier.seconds + prepared.reused_seconds
    return Cost(reused_seconds=prepared.reused_seconds, encoder_seconds=made)


def _manifest(
    collection: Collection,
    staged: Staged,
    window: Window,
    documents: DocumentStore,
    records: list[RetrieverRecord],
) -> Manifest:
    return Manifest(
        collection=collection.name,
        fingerprint=staged.fingerprint,
        documents=documents.documents,
        passages=documents.passages,
        texts=documents.texts,
        window=asdict(window),
        retrievers=tuple(records),
        exclude_same_id=collection.exclude_same_id,
    )


def _write_down(
    generation: GenerationLayout,
    manifest: Manifest,
    meter: CostMeter,
    staged: Staged,
    checks: Mapping[str, Any],
) -> None:
    write_json(generation.cost, {name: asdict(cost) for name, cost in meter.costs.items()})
    manifest.save(generation.manifest)
    found = {"over_budget": staged.over_budget, "cut": staged.cut, "retrievers": dict(checks)}
    save_checks(generation.checks, {**found, "files": file_digests(generation)})
