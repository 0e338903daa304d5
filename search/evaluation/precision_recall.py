"""Precision at eleven points of recall, interpolated as trec_eval does, averaged over judged queries."""

from corpora.judgements import Qrels
from search.evaluation.measures import evaluate_run, mean_scores
from search.ranking import Run

RECALLS = tuple(point / 10 for point in range(11))


def precision_recall(run: Run, qrels: Qrels) -> list[tuple[float, float]]:
    """Return (recall, mean interpolated precision) at recall 0, .1, ... 1.

    Interpolated precision at a recall is the highest precision at that recall or any beyond it.
    """
    names = [f"IPrec@{recall}" for recall in RECALLS]
    means = mean_scores(evaluate_run(run, qrels, names))
    return [(recall, means[name]) for recall, name in zip(RECALLS, names, strict=True)]
