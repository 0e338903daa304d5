"""The ladder: one collection, every family of embeddings from 2013 to today, one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.collection import Collection
from corpora.progress import Progress
from indexer.build import BuildSettings, build_index
from indexer.spec import RetrieverSpec, parse_retrievers
from search.evaluation.evaluation import Evaluation
from search.evaluation.measure_names import DEFAULT_MEASURES
from search.measuring import measure_index
from search.retrieval.searcher import Searcher

#: What every machine has, in the order in which the field came to it. Raw layers are bf16: they need no calibration.
RUNGS = (
    "bm25",
    "word2vec",
    "glove",
    "distilled",
    "fitted",
    *(f"layer{layer}=contextual:layer={layer},pooling=mean,precision=bf16" for layer in (0, 2, 4)),
    *(f"layer{layer}-white=contextual:layer={layer},pooling=mean,precision=bf16,whitening=auto" for layer in (0, 2, 4)),
    "contextual",
    "whitened",
    "hybrid",
)


@dataclass(frozen=True, slots=True)
class Extras:
    """Families that need a path: a fastText file, a folder of BERT or kin, an ELMo folder, a static sentence model."""

    fasttext: str = ""
    bert: str = ""
    elmo: str = ""
    token_table: str = ""

    def notations(self) -> list[str]:
        """Return the notations of those that are given."""
        given = {
            "fasttext=static:vectors=": self.fasttext,
            "token-table:model=": self.token_table,
            "elmo:model=": self.elmo,
            "bert=contextual:precision=bf16,model=": self.bert,
        }
        return [notation + path for notation, path in given.items() if path]


def ladder_retrievers(extras: Extras, defaults: Mapping[str, str]) -> list[RetrieverSpec]:
    """Return the retrievers of a ladder, those with a path before the sentence transformer."""
    at = RUNGS.index("contextual")
    return parse_retrievers([*RUNGS[:at], *extras.notations(), *RUNGS[at:]], defaults)


def climb(
    collection: Collection,
    folder: Path,
    *,
    progress: Progress,
    extras: Extras | None = None,
    defaults: Mapping[str, str] | None = None,
    split: str = "test",
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    trust_pickle: bool = False,
) -> Evaluation:
    """Index a collection with every family and evaluate them all.

    Parameters
    ----------
    collection
        With judgements.
    folder
        Where the index goes; it stays for `query` and the diagnostics.
    progress
        Told of all of it.
    extras
        Families that need a path.
    defaults
        Options for all retrievers that take them.
    split, measures
        As in `measure_index`.
    trust_pickle
        Whether files that are pickles may be loaded.

    Raises
    ------
    NoJudgementsError
        If the collection has no such judgements.
    """
    specs = ladder_retrievers(extras or Extras(), defaults or {})
    settings = BuildSettings(tuple(specs), trust_pickle=trust_pickle)
    build_index(collection, folder, settings, progress=progress)
    searcher = Searcher.open(folder)
    try:
        return measure_index(searcher, progress=progress, split=split, measures=measures).evaluation
    finally:
        searcher.close()
