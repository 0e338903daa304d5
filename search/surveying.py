"""A survey of a collection together with what indexing it would take on this machine."""

from collections.abc import Mapping

from corpora.collection import Collection
from corpora.progress import Progress
from corpora.survey import Survey, survey
from indexer.estimate import Estimate, estimate
from indexer.probing import probes


def survey_with_estimates(collection: Collection, progress: Progress) -> tuple[Survey, Mapping[str, Estimate]]:
    """Read a collection once and return what it is like, and about what each retriever would take.

    Raises
    ------
    CorpusError
        If the collection cannot be read.
    """
    pieces: list[int] = []
    found = survey(collection, probes=probes(pieces.append), progress=progress)
    per_document = sum(pieces) / found.sampled if found.sampled else 0.0
    return found, estimate(found.documents, found.words.total, round(per_document * found.documents))
