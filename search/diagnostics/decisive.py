"""Which words of a hit decided: those that add most to its score, where a score is a sum over words.

So it is for averages of word vectors and for BM25; a contextual score is not, and leaving words out one by one would
cost a forward pass each: for those, and on request, there is `twindex explain`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from indexer.encoder import WordEncoder
from indexer.static.averaging import AveragedEncoder
from indexer.static.tokenizer import words as static_words
from search.diagnostics.explain import Floats, WordShare, document_word_shares, query_direction
from search.ranking import Hit
from search.retrieval.dense import DenseRetriever
from search.retrieval.fusion import HybridRetriever
from search.retrieval.lexical import LexicalRetriever
from search.retrieval.retriever import Retriever
from search.retrieval.searcher import Answer, Comparison, Searcher

#: Words are named until they make up this share of what all words add, but no more than so many.
_SHARE = 0.7
_MOST = 5
_RUN = re.compile(r"\w+(?:[.'’]\w+)*")

#: retriever -> document id -> decisive words
Decisive = Mapping[str, Mapping[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Marked:
    """A comparison, and the words that decided each hit, as they stand in its title or passage, largest share first.

    A lexical retriever scores whole documents: the passage of its hits is the one in which the terms weigh most.
    """

    comparison: Comparison
    decisive: Decisive


def mark_decisive(searcher: Searcher, comparison: Comparison) -> Marked:
    """Find the decisive words of all hits of a comparison; retrievers of which none can be told are left out."""
    answers: dict[str, Answer] = {}
    decisive: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, answer in comparison.answers.items():
        retriever = searcher.retrievers[name]
        explainers = list(_explainers(searcher, retriever, comparison.query))
        hits = []
        for hit in answer.hits:
            shown = _best_passage(searcher, retriever, comparison.query, hit)
            found = [explain(shown) for explain in explainers]
            if explainers:
                decisive.setdefault(name, {})[hit.doc_id] = _interleaved(found)
            hits.append(shown)
        answers[name] = replace(answer, hits=tuple(hits))
    return Marked(Comparison(comparison.query, answers), decisive)


Explain = Callable[[Hit], Sequence[str]]


def _explainers(searcher: Searcher, retriever: Retriever, query: str) -> Iterator[Explain]:
    """Yield what finds the decisive words of one hit: one for a sum over words, those of its members for a fusion."""
    if isinstance(retriever, HybridRetriever):
        for member in retriever.members:
            yield from _explainers(searcher, member, query)
    elif isinstance(retriever, LexicalRetriever):
        yield lambda hit: _surfaces(_terms(searcher, retriever, query, hit.doc_id), hit, retriever.analyse)
    elif isinstance(retriever, DenseRetriever) and isinstance(retriever.parts.encoder, WordEncoder):
        encoder, whitening = retriever.parts.encoder, retriever.parts.whitening
        encoded, _ = retriever.query_vectors.encode(retriever.parts, query)
        direction: Floats = query_direction(retriever.parts.project(encoded), whitening)
        analyse = static_words if isinstance(encoder, AveragedEncoder) else _as_it_stands

        def explain(hit: Hit) -> list[str]:
            text = searcher.index.documents.passage_text(hit.doc_id, hit.passage_number)
            shares = document_word_shares(direction, text, encoder, whitening) if direction.any() else []
            return _surfaces(_largest(shares), hit, analyse)

        yield explain


def _as_it_stands(run: str) -> list[str]:
    return [run.casefold()]


def _terms(searcher: Searcher, retriever: LexicalRetriever, query: str, doc_id: str) -> list[str]:
    """Return the decisive terms of a document, as they are indexed."""
    numbers = searcher.index.documents.select_ids([doc_id]).documents
    if not len(numbers):
        return []  # the database is damaged: its table of ids does not say what its documents do
    scores = [WordShare(part.term, part.score) for part in retriever.store.explain(query, int(numbers[0]))]
    return _largest(sorted(scores, key=lambda each: -each.share))


def _largest(shares: Sequence[WordShare]) -> list[str]:
    """Return the first words whose shares make up `_SHARE` of what all positive ones add."""
    positive = [each for each in shares if each.share > 0.0]
    wanted, chosen = _SHARE * sum(each.share for each in positive), []
    for each in positive[:_MOST]:
        chosen.append(each.word)
        wanted -= each.share
        if wanted <= 0.0:
            break
    return chosen


def _surfaces(terms: Sequence[str], hit: Hit, analyse: Callable[[str], Iterable[str]]) -> list[str]:
    """Return how terms are written in a hit's title and passage, small letters, each form once."""
    forms: dict[str, dict[str, None]] = {term: {} for term in terms}
    for run in dict.fromkeys(_RUN.findall(f"{hit.title}\n{hit.passage}")):
        parts = list(analyse(run))
        for part in parts:
            if part in forms:
                # A run of a script without spaces is several terms, which stand in it as they are.
                form = part if len(parts) > 1 and part in run.casefold() else run.casefold()
                forms[part][form] = None
    return list(dict.fromkeys(form for found in forms.values() for form in found))


def _interleaved(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the words of several lists in turn, each once."""
    longest = max(map(len, lists), default=0)
    return tuple(dict.fromkeys(words[place] for place in range(longest) for words in lists if place < len(words)))


def _best_passage(searcher: Searcher, retriever: Retriever, query: str, hit: Hit) -> Hit:
    """Return a lexical hit with the passage in which the query's terms weigh most, any other hit as it is."""
    if not isinstance(retriever, LexicalRetriever):
        return hit
    cuts = next(iter(searcher.index.documents.iter_cuts([hit.doc_id])), None)
    if cuts is None or len(cuts[2]) < 2:
        return hit
    number = int(searcher.index.documents.select_ids([hit.doc_id]).documents[0])
    weights = {part.term: part.score for part in retriever.store.explain(query, number)}
    passages = cuts[2]
    sums = [sum(weights.get(term, 0.0) for term in set(retriever.analyse(passage.text))) for passage in passages]
    best = passages[max(range(len(sums)), key=lambda place: (sums[place], -place))]
    stored = searcher.index.documents.fetch(hit.doc_id, best.number)
    return hit if stored is None else replace(hit, passage=stored.passage, passage_number=best.number)
