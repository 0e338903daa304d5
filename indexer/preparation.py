"""From a retriever's notation to its encoder and the vectors of the collection: one function a family."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from indexer.cost import Cost
from indexer.encoder import Encoder
from indexer.errors import ModelError
from indexer.spec import Family, RetrieverSpec
from indexer.vectors import Vectors, normalize
from indexer.whitening import Whitening, WhiteningSpec
from indexer.workshop import Made, Workshop


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one retriever is filled from.

    Attributes
    ----------
    encoder
        Encodes its queries.
    blocks
        Yields the (b, d) vectors of all texts in order of row, anew at each call.
    general
        Yields the vectors of the background texts in the same space.
    dimension
        d.
    encoder_folder
        Where the encoder is saved already; None where it is not.
    model
        The model it came from, for people.
    tokens
        Tokens read; 0 where nobody counted.
    earlier
        What its vectors cost when an earlier retriever (or build) encoded them.
    findings
        What `checks.json` should say of it.
    """

    encoder: Encoder
    blocks: Callable[[], Iterator[Vectors]]
    general: Callable[[], Iterator[Vectors]]
    dimension: int
    encoder_folder: Path | None = None
    model: str = ""
    tokens: int = 0
    earlier: Cost = field(default_factory=Cost)
    findings: Mapping[str, Any] = field(default_factory=dict)


def prepare(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    """Make a retriever's encoder, and encode the collection with it.

    Raises
    ------
    ModelError
        If the model or table asked for cannot be used.
    """
    return _FAMILIES[spec.family](spec, workshop)


def _static(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    from indexer.static.corpus_table import for_corpus
    from indexer.static.word_vectors import load_word_vectors

    source = spec.get("vectors", "glove")
    if source == "word2vec":
        vectors = _trained(spec, workshop)
    elif source == "fasttext":
        message = (
            "fastText has no built-in vectors; name a file: --static PATH.bin, or static:vectors=PATH.bin"
        )
        raise ModelError(message)
    else:
        limit = int(spec.get("limit")) if spec.get("limit") else None
        vectors = load_word_vectors(
            source, limit=limit, trust_pickle=workshop.trust_pickle, progress=workshop.progress
        )
    encoder = for_corpus(vectors, workshop.word_statistics, weighting=spec.get("weights", "idf"))
    return _streamed(encoder, workshop, model=vectors.name)


def _trained(spec: RetrieverSpec, workshop: Workshop) -> Any:  # noqa: ANN401 - WordVectors, imported with gensim
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
    encoder: Encoder, workshop: Workshop, *, model: str, findings: Mapping[str, Any] | None = None
) -> Prepared:
    """Prepare an encoder so fast that encoding again costs less than keeping the vectors."""

    def blocks() -> Iterator[Vectors]:
        progress = workshop.progress
        progress.start("encoding (static)", workshop.documents.texts, "texts")
        for texts in workshop.text_blocks():
            yield encoder.encode(texts)
            progress.advance(len(texts))
        progress.finish()

    def general() -> Iterator[Vectors]:
        yield encoder.encode(workshop.background)

    tokens = workshop.word_statistics.n_tokens
    return Prepared(encoder, blocks, general, encoder.dimension, None, model, tokens, findings=findings or {})


def _contextual(spec: RetrieverSpec, workshop: Workshop) -> Prepared:
    made = workshop.contextual(spec)
    earlier = workshop.earlier_cost(made)
    workshop.encoded(made)
    return Prepared(
        made.encoder,
        lambda: workshop.encoded_blocks(made),
        lambda: iter([workshop.encode_background(made)]),
        made.encoder.dimension,
        made.folder,
        made.model,
        earlier=earlier,
        findings=made.findings,
    )


def _teacher_whitening(spec: RetrieverSpec, made: Made, workshop: Workshop, rows: Any) -> Whitening | None:  # noqa: ANN401
    from indexer.whitening import VectorStatistics, WhiteningMode

    asked = WhiteningSpec.parse(spec.get("teacher", "auto"))
    if asked.mode is WhiteningMode.NONE:
        return None
    general = VectorStatistics.of(workshop.encode_background(made))
    return Whitening.fit(workshop.encoded_blocks(made, rows), asked, general=general)


_FAMILIES: Mapping[Family, Callable[[RetrieverSpec, Workshop], Prepared]] = MappingProxyType(
    {
        Family.STATIC: _static,
        Family.CONTEXTUAL: _contextual,
    }
)
