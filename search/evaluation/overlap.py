"""How far two rankings agree, without any judgement.

Rank-biased overlap: W. Webber, A. Moffat and J. Zobel, "A similarity measure for indefinite rankings",
ACM TOIS 28(4), 2010. Kendall's tau is counted over the documents that both rankings hold.
"""

from collections.abc import Sequence


def overlap(a: Sequence[str], b: Sequence[str], k: int) -> float:
    """Return the share of documents that two rankings have in common among their first k.

    Parameters
    ----------
    a, b
        Document ids, best first.
    k
        How far to look, at least 1. Where both rankings are shorter, the longer one's length counts instead.

    Returns
    -------
    float
        In [0, 1]; 1 for two empty rankings, which answer alike.
    """
    first, second = set(a[:k]), set(b[:k])
    longest = max(len(first), len(second))
    return len(first & second) / longest if longest else 1.0


def rank_biased_overlap(a: Sequence[str], b: Sequence[str], p: float = 0.9) -> float:
    """Return the extrapolated rank-biased overlap of two rankings (Webber et al. 2010, equation 32).

    The top counts most: the weight of depth d is (1 - p) p^(d - 1). What lies beyond the end of the rankings
    is taken to agree as far as what was seen.

    Parameters
    ----------
    a, b
        Document ids, best first, each at most once; the rankings may differ in length.
    p
        Persistence in (0, 1): at .9, the first ten ranks carry 86% of the weight.

    Returns
    -------
    float
        In [0, 1]; 1 for equal rankings, two empty ones included, 0 where nothing is shared.

    Raises
    ------
    ValueError
        If p is not between 0 and 1.
    """
    if not 0 < p < 1:
        message = f"p = {p}: the persistence of rank-biased overlap lies between 0 and 1, say 0.9"
        raise ValueError(message)
    shorter, longer = sorted((a, b), key=len)
    if not longer:
        return 1.0
    s, total = len(shorter), 0.0
    shared, shared_at_s = 0, 0
    seen_shorter: set[str] = set()
    seen_longer: set[str] = set()
    for d, document in enumerate(longer, start=1):
        seen_longer.add(document)
        shared += document in seen_shorter
        if d <= s:
            other = shorter[d - 1]
            shared += other in seen_longer
            seen_shorter.add(other)
            shared_at_s = shared
            total += shared / d * p**d
        else:
            # Beyond its end the shorter ranking is taken to agree at the rate it had at its end.
            total += (shared + shared_at_s * (d - s) / s if s else 0.0) / d * p**d
    length = len(longer)
    unseen = (shared - shared_at_s) / length + (shared_at_s / s if s else 0.0)
    # 1 - p and 1/p leave a last digit above 1 for equal rankings.
    return min(1.0, (1 - p) / p * total + unseen * p**length)


def kendall_tau(a: Sequence[str], b: Sequence[str]) -> float | None:
    """Return Kendall's tau of the order of the documents that both rankings hold.

    Returns
    -------
    float or None
        In [-1, 1]; None with fewer than two documents in common.
    """
    place = {document: rank for rank, document in enumerate(b)}
    ranks = [place[document] for document in a if document in place]
    pairs = len(ranks) * (len(ranks) - 1) // 2
    if not pairs:
        return None
    agreeing = sum(ranks[j] > ranks[i] for i in range(len(ranks)) for j in range(i + 1, len(ranks)))
    return (2 * agreeing - pairs) / pairs
