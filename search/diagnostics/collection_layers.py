"""The layers of a model over a collection, its documents cut to what the model reads."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from corpora.builtin.lee import open_lee
from corpora.collection import Collection
from corpora.progress import Progress
from indexer.staging import background_texts
from search.diagnostics.layer_models import open_layer_model
from search.diagnostics.layer_survey import JudgedTexts, LayerRow, survey_layers
from search.errors import DiagnosisError


def collection_layers(
    collection: Collection,
    *,
    progress: Progress,
    model: str = "",
    limit: int | None = None,
    split: str = "test",
    seed: int = 0,
) -> list[LayerRow]:
    """Return a row a layer; retrieval is measured where the collection has judgements of that split.

    Raises
    ------
    DiagnosisError
        If the collection has no text.
    """
    documents = [document for document in islice(collection.documents(), limit) if document.searchable_text.strip()]
    if not documents:
        message = f"{collection.name} has no text to look at"
        raise DiagnosisError(message)
    qrels = collection.qrels.get(split, {})
    judged = JudgedTexts(
        [document.doc_id for document in documents],
        [document.searchable_text for document in documents],
        {query_id: query.text for query_id, query in collection.queries.items() if query_id in qrels},
        qrels,
    )
    background = background_texts(collection, open_lee().background())
    reader = open_layer_model(model)
    return survey_layers(reader, judged, np.random.default_rng(seed), background=background, progress=progress)


def layer_rows(rows: list[LayerRow]) -> Iterator[dict[str, str]]:
    """Yield a row a layer for a table."""
    for row in rows:
        found = row.contextuality
        yield {
            "layer": str(row.layer),
            "mean cosine": f"{row.mean_cosine:.3f}",
            "general text": "-" if row.general_cosine is None else f"{row.general_cosine:.3f}",
            "self-similarity": f"{found.adjusted_self_similarity:.3f}",
            "in a sentence": f"{found.adjusted_intra_sentence:.3f}",
            "explained by one vector": f"{found.adjusted_explained_static:.3f}",
            "nDCG@10 raw": "-" if row.raw is None else f"{row.raw:.4f}",
            "whitened": "-" if row.whitened is None else f"{row.whitened:.4f}",
        }
