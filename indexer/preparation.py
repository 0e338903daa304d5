"""From a retriever's notation to its encoder and the vectors of the collection: one function a family."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from indexer.accounting import NO_LOAD, Load, contextual_load, kept_word_load, reused_seconds, word_load
from indexer.cost import Cost
from indexer.encoder import Encoder
from indexer.encoders import open_encoder
from indexer.errors import IndexerError, ModelError
from indexer.manifest import RetrieverRecord
from indexer.prior import DRIFT
from indexer.spec import Family, RetrieverSpec
from indexer.teacher_space import TeacherSpace
from indexer.vectors import Vectors
from indexer.whitening_spec import WhiteningSpec
from indexer.whitening_strength import GeneralSpace
from indexer.workshop import Made, Work, Workshop, measure_general

if TYPE_CHECKING:
    from indexer.static.distillation import FurtherWords


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one retriever is filled from.

    Attributes
    ----------
    encoder
        Encodes its queries.
    blocks
        Yields the (b, d) vectors of all texts in order of row, anew at each call.
    some
        Yields those of the given rows.
    general
        Measures general text in the same space, which is what `auto` whitening goes by.
    dimension
        d.
    encoder_folder
        Where the encoder is saved already; None where it is not.
    model
        The model it came from, for people.
    load
        Tokens and multiply-adds of encoding all texts.
    earlier
        What its vectors cost when an earlier retriever of this build encoded them.
    reused_seconds
        What they cost when an earlier build did.
    kept
        The record, in the generation before, whose encoder this is; None where this build made it.
    findings
        What `checks.json` should say of it.
    """

    encoder: Encoder
    blocks: Callable[[], Iterator[Vectors]]
    some: Callable[[NDArray[np.int64]], Iterator[Vectors]]
    general: Callable[[], GeneralSpace | None]
    dimension: int
    encoder_folder: Path | None = None
    model: str = ""
    load: Load = NO_LOAD
    earlier: Cost = field(default_factory=Cost)
    reused_seconds: float = 0.0
    kept: RetrieverRecord | None = None
    findings: Mapping[str, Any] = field(default_factory=dict)


def prepare(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    """Make a retriever's encoder, and encode the collection with it.

    Raises
    ------
    ModelError
        If the model or table asked for cannot be used.
    """
    frozen = _frozen(spec, workshop) if spec.family in _STATISTICAL else None
    return _FAMILIES[spec.family](spec, workshop) if frozen is None else frozen


def _frozen(spec: RetrieverSpec, workshop: Workshop) -> Prepared | None:
    """Prepare the word vectors and weights that an earlier build made, where they stay."""
    prior = workshop.frozen
    found = None if prior is None or spec.get("query") else prior.encoder_folder(spec)
    if prior is None or found is None:
        return None
    folder, record = found
    try:
        encoder = open_encoder(folder)
    except IndexerError:
        return None  # of another format: it is made anew
    if encoder.fingerprint != record.encoder:
        return None
    before = prior.checks.get("retrievers", {}).get(record.name, {})
    findings: dict[str, Any] = {key: before[key] for key in _KEPT_FINDINGS if key in before}
    findings |= statistics_since(record.name, workshop)
    load = kept_word_load(encoder, record, prior, workshop)
    prepared = _streamed(encoder, workshop, model=record.model, load=load, findings=findings, folder=folder)
    return replace(prepared, kept=record)


def statistics_since(name: str, workshop: Workshop) -> dict[str, Any]:
    """Return the finding that a retriever's statistics are an earlier build's, and how many texts are new since."""
    if workshop.frozen is None:
        return {}
    texts, added = workshop.frozen.statistics(name)
    return {"statistics": {"texts": texts, "added": added + workshop.new_texts}}


def note_drift(findings: Mapping[str, Any], workshop: Workshop) -> None:
    """Say which statistics are an earlier build's, and whether the texts have drifted from them."""
    kept = {name: found["statistics"] for name, found in findings.items() if found["statistics"]["added"]}
    stale = [name for name, found in kept.items() if found["added"] > DRIFT * found["texts"]]
    for name in stale:
        found = kept[name]
        workshop.note(
            f"{name}: its statistics are of {found['texts']:,} texts, and {found['added']:,} have come since, more than"
            f" {DRIFT:.0%}: --refit makes them anew without encoding again"
        )


#: Families whose encoders are made from the corpus.
_STATISTICAL = frozenset({Family.STATIC, Family.FITTED, Family.DISTILLED})
_KEPT_FINDINGS = ("fit",)


def _static(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    from indexer.static.corpus_table import for_corpus
    from indexer.static.word_vectors import load_word_vectors

    source = spec.get("vectors", "glove")
    if source == "word2vec":
        vectors = _trained(spec, workshop)
    elif source == "fasttext":
        message = "fastText has no built-in vectors; name a file: --static PATH.bin, or static:vectors=PATH.bin"
        raise ModelError(message)
    else:
        limit = int(spec.get("limit")) if spec.get("limit") else None
        vectors = load_word_vectors(source, limit=limit, trust_pickle=workshop.trust_pickle, progress=workshop.progress)
    encoder = for_corpus(vectors, workshop.word_statistics, weighting=spec.get("weights", "idf"))
    return _streamed(encoder, workshop, model=vectors.name)


def _trained(spec: RetrieverSpec, workshop: Workshop) -> Any:
    from indexer.static.tokenizer import words
    from indexer.static.word_vectors import Word2VecTraining, train_word2vec

    training = Word2VecTraining(
        dimension=int(spec.get("dimension", "100")),
        skip_gram=spec.get("architecture", "skip-gram") != "cbow",
        epochs=int(spec.get("epochs")) if spec.get("epochs") else None,
    )

    def texts() -> Iterator[list[str]]:
        for block in workshop.text_blocks():
            yield from map(words, block)

    return train_word2vec(texts, training, progress=workshop.progress)


def _streamed(
    encoder: Encoder,
    workshop: Workshop,
    *,
    model: str,
    load: Load | None = None,
    findings: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Prepared:
    """Prepare an encoder so fast that encoding again costs less than keeping the vectors."""

    def blocks() -> Iterator[Vectors]:
        progress = workshop.progress
        progress.start("encoding (static)", workshop.documents.texts, "texts")
        for texts in workshop.text_blocks():
            yield encoder.encode(texts)
            progress.advance(len(texts))
        progress.finish()

    def some(rows: NDArray[np.int64]) -> Iterator[Vectors]:
        return map(encoder.encode, workshop.text_blocks(rows=rows))

    def general() -> GeneralSpace | None:
        return measure_general(encoder, workshop.background)

    load = load or word_load(encoder, workshop)
    return Prepared(encoder, blocks, some, general, encoder.dimension, folder, model, load, findings=findings or {})


def _token_table(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    from indexer.static.token_tables import read_sentence_model

    if not spec.get("model"):
        message = f"{spec.name}: name the folder of a static sentence model: token-table:model=DIR"
        raise ModelError(message)
    return _streamed(read_sentence_model(Path(spec.get("model"))), workshop, model=Path(spec.get("model")).name)


def _contextual(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    earlier = workshop.earlier_cost(spec, Work.MAKING, Work.TEXTS)
    made = workshop.contextual(spec)
    workshop.encoded(made)
    return Prepared(
        made.encoder,
        lambda: workshop.encoded_blocks(made),
        lambda rows: workshop.encoded_blocks(made, rows),
        lambda: workshop.general_space(made),
        made.encoder.dimension,
        made.folder,
        made.model,
        contextual_load(made, spec, workshop),
        earlier,
        reused_seconds(made, workshop, Work.MAKING, Work.TEXTS),
        findings=made.findings,
    )


def _fitted(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    from indexer.static.distillation import static_encoder, word_counts
    from indexer.static.fitting import FitOptions, fit_table

    earlier = workshop.earlier_cost(spec, Work.MAKING, Work.TEXTS, Work.WORDS)
    made = workshop.contextual(spec)
    total = workshop.documents.texts
    share = float(spec.get("share", "1"))
    rows = workshop.stable_sample(max(1, round(total * share)) if total else 0)
    space = TeacherSpace.fit(made, rows, workshop, WhiteningSpec.parse(spec.get("teacher", "auto")))
    statistics = workshop.word_statistics
    options = FitOptions(ridge=float(spec.get("ridge")) if spec.get("ridge") else None)
    fitted = fit_table(
        word_counts(workshop.text_blocks(rows=rows), statistics.words),
        space.teacher(rows),
        prior=space.project(workshop.encoded_words(made)),
        idf_weights=statistics.weights(list(statistics.words), "idf"),
        options=options,
        progress=workshop.progress,
    )
    encoder = static_encoder(
        statistics.words,
        fitted,
        further=_further_words(made, space, workshop) if spec.get("unseen", "drop") == "words" else None,
        unseen_weight=float(statistics.unseen_weight("idf") ** options.exponent),
        name="fitted",
    )
    findings = {
        "fit": {
            "passages": fitted.passages,
            "words": len(statistics.words),
            "share": share,
            "ridge": fitted.ridge,
            "iterations": fitted.iterations,
            "held_out_cosine": fitted.held_out_cosine if np.isfinite(fitted.held_out_cosine) else None,
            "fit_seconds": fitted.seconds,
        }
    }
    prepared = _streamed(encoder, workshop, model=made.model, findings=findings)
    if spec.get("query") == "contextual":
        workshop.encoded(made)
        load = contextual_load(made, spec, workshop)
        prepared = replace(prepared, blocks=space.blocks, some=lambda rows: iter([space.teacher(rows)]), load=load)
    taken = None if spec.get("query") == "contextual" else rows
    reused = reused_seconds(made, workshop, Work.MAKING, Work.TEXTS, Work.WORDS, rows=taken)
    return replace(prepared, earlier=earlier, reused_seconds=reused)


def _further_words(made: Made, space: TeacherSpace, workshop: Workshop) -> "FurtherWords":
    """Return the whole words of the model's own vocabulary, encoded alone: for queries, documents lack them."""
    from indexer.static.distillation import FurtherWords, pieces_of, whole_words

    words = whole_words(pieces_of(workshop.tokenizer_definition()))
    return FurtherWords(words, space.project(workshop.encoded_words(made, words)))


def _distilled(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    from indexer.static.distillation import static_encoder
    from indexer.static.fitting import distil_table

    earlier = workshop.earlier_cost(spec, Work.MAKING, Work.WORDS)
    made = workshop.contextual(spec)
    statistics = workshop.word_statistics
    weights = statistics.weights(list(statistics.words), "idf")
    table = distil_table(workshop.encoded_words(made), weights)
    encoder = static_encoder(statistics.words, table, name="distilled")
    reused = reused_seconds(made, workshop, Work.MAKING, Work.WORDS)
    return replace(_streamed(encoder, workshop, model=made.model), earlier=earlier, reused_seconds=reused)


_FAMILIES: Mapping[Family, Callable[[RetrieverSpec, Workshop], Prepared]] = MappingProxyType(
    {
        Family.STATIC: _static,
        Family.FITTED: _fitted,
        Family.DISTILLED: _distilled,
        Family.CONTEXTUAL: _contextual,
        Family.ELMO: _contextual,
        Family.TOKEN_TABLE: _token_table,
    }
)
