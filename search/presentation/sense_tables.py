"""Probes, contexts and context dependence as rows of tables, and what is to be said below them."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from search.diagnostics.collection_contexts import ContextReport
from search.diagnostics.context_dependence import ContextDependence
from search.diagnostics.index_senses import EVERYDAY, IndexSenses
from search.diagnostics.probe import Probe
from search.diagnostics.senses import SenseReport
from search.presentation.summaries import size

_BAR = 20
_STEPS = "▁▂▃▄▅▆▇█"
_MOST_NEIGHBOURS = 5


def neighbour_rows(report: SenseReport) -> Iterator[dict[str, str]]:
    """Yield for each context the neighbours that move the word most, and how much attention it gives them, by layer."""
    known = [each for context in report.contexts for each in context.neighbours]
    most_moved = max((effect for each in known for effect in each.effect), default=0.0)
    most_seen = max((share for each in known for share in each.attention), default=0.0)
    for number, context in enumerate(report.contexts, start=1):
        for place, each in enumerate(context.moved_most()[:_MOST_NEIGHBOURS]):
            layer = max(range(len(each.attention)), key=each.attention.__getitem__)
            yield {
                "context": f"{number}  {_short(context.text)}" if not place else "",
                "neighbour": each.word,
                "masked, the word moves by": f"{each.effect[-1]:.3f}",
                "layer 0 to last": spark(each.effect, most_moved),
                "most attention": f"{each.attention[layer]:.2f} in layer {layer + 1}",
                "layer 1 to last": spark(each.attention, most_seen),
            }


def neighbour_notes(report: SenseReport) -> Iterator[str]:
    """Yield what masking and attention say, and where the rest of the attention goes."""
    yield (
        "masked: 1 - cosine between the word's vector and the one it gets when the neighbour is hidden; attention: the "
        "share that the word gives to it, averaged over heads"
    )
    special = [share for context in report.contexts for share in context.attention_to_special]
    if special:
        yield (
            f"the special pieces ([CLS], [SEP] or their like) take {min(special):.2f} to {max(special):.2f} of the "
            "attention, by layer: that is where models put what they do not need"
        )


def spark(values: Sequence[float], most: float) -> str:
    """Return one character a value, from the lowest for 0 to the highest for `most`."""
    top = len(_STEPS) - 1
    return "".join(_STEPS[round(top * min(1.0, max(0.0, value) / most))] if most > 0 else _STEPS[0] for value in values)


def _short(text: str, most: int = 32) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def probe_rows(found: Probe) -> Iterator[dict[str, str]]:
    """Yield a row a layer: what a probe reads out of vectors, and what their cosines say."""
    for layer in found.layers:
        yield {
            "layer": str(layer.layer),
            "probe right": f"{layer.accuracy:.3f}",
            "cosine, one sense": f"{layer.same:.3f}",
            "two senses": f"{layer.different:.3f}",
            "AUC of the cosine": f"{layer.cosine_auc:.3f}",
            "": "█" * round(_BAR * layer.accuracy) + "░" * (_BAR - round(_BAR * layer.accuracy)),
        }


def probe_notes(found: Probe, *, pairs: bool) -> Iterator[str]:
    """Yield what the figures are to be held against."""
    majority = f"would be right in {found.majority:.3f}"
    if pairs:
        yield f"{found.occurrences:,} pairs of {found.words:,} words; one answer for all {majority}"
    else:
        yield (
            f"{found.occurrences:,} occurrences of {found.words:,} words; naming each word's commonest sense {majority}"
            ", which is all that one static vector a word can do"
        )
    yield (
        "probe: a linear classifier of the sense, asked about occurrences that it was not trained on; a standard error "
        f"is about {found.standard_error:.3f}"
    )
    yield "AUC: how often two uses in one sense have the larger cosine than two in different senses; .5 is chance"
    last = found.layers[-1]
    telling = max(found.layers, key=lambda layer: layer.accuracy)
    if telling.layer != last.layer and telling.accuracy > found.majority + 2 * found.standard_error:
        yield (
            f"layer {telling.layer} is where the probe reads most: its cosines are {telling.same:.3f} within a sense "
            f"and {telling.different:.3f} between senses, and yet the sense can be read in {telling.accuracy:.3f}"
        )
    yield from found.notes


def context_rows(report: ContextReport) -> Iterator[dict[str, str]]:
    """Yield a row for each table there could be, and one for the model that takes their place."""
    survey, costs = report.survey, report.costs
    new = {count.window: f"{count.new_at_the_end:.1%}" for count in survey.counts}
    words = f"{survey.words:,}"
    yield {
        "a vector for": f"each word, static ({report.static_dimension} d)",
        "rows": words,
        "weighs": size(costs.static_bytes),
        "lacking for new text": new.get(0, "-"),
    }
    weights = dict(costs.contextual_bytes)
    for count in survey.counts:
        around = f"each word with {_neighbours(count.window)} ({report.dimension} d)"
        yield {
            "a vector for": around if count.window else f"each word, fitted ({report.dimension} d)",
            "rows": f"{count.contexts:,}",
            "weighs": size(weights[count.window]),
            "lacking for new text": new[count.window],
        }
    yield {
        "a vector for": f"anything: the model ({report.model})",
        "rows": "-",
        "weighs": size(costs.model_bytes),
        "lacking for new text": "0.0%",
    }


def _neighbours(window: int) -> str:
    return f"{window} {'word' if window == 1 else 'words'} either side"


def context_notes(report: ContextReport) -> Iterator[str]:
    """Yield what was counted, what a forward pass took, and how many contexts the commonest words have."""
    survey, forward = report.survey, report.forward
    yield f"{survey.texts:,} texts, {survey.tokens:,} words in all, {survey.words:,} different ones; float32"
    yield (
        f"the model pays by the text instead: {forward.milliseconds:.1f} ms for {forward.words:,} words at once "
        f"(median of {forward.texts} texts, one at a time, torch in fp32 on this machine)"
    )
    yield "lacking for new text: of the words in the second half of the texts, those whose row the first half lacks"
    widest = survey.counts[-1]
    richest = ", ".join(f"{each.word} {each.contexts:,} of {each.tokens:,}" for each in widest.richest[:5])
    yield f"distinct contexts ({_neighbours(widest.window)}) of the commonest words: {richest}"


def dependence_rows(found: ContextDependence) -> Iterator[dict[str, str]]:
    """Yield the words at both ends of the ranking, side by side."""
    columns = (found.dependent, found.dependent_beside, found.stable)
    for row in zip_longest(*columns):
        named, beside, stable = ("" if each is None else f"{each.word} {each.self_similarity:+.2f}" for each in row)
        yield {"depend on context most": named, "beside everyday words": beside, "most stable": stable}


def dependence_notes(found: IndexSenses) -> Iterator[str]:
    """Yield what self-similarity is, and where the word asked for stands."""
    ranked, senses = found.dependence, found.senses
    if ranked is None:
        return
    yield (
        f"{ranked.words:,} words that occur {ranked.least_occurrences} times or more in {ranked.texts:,} texts; layer "
        f"{ranked.layer} of {found.model}; everyday words: the {EVERYDAY:,} commonest of general English"
    )
    yield (
        "self-similarity: mean cosine of a word's vectors over its occurrences, less that of random tokens "
        f"({ranked.anisotropy:.2f}); a static vector has the highest there is, {1 - ranked.anisotropy:.2f}"
    )
    if senses is not None and senses.mean_cosine is not None and found.place is not None:
        own = senses.mean_cosine - ranked.anisotropy
        yield (
            f"“{senses.word}”: {own:+.2f} over {senses.read:,} occurrences; {found.place:.0%} of the words depend on "
            "their contexts more"
        )


def grouping_notes(found: IndexSenses) -> Iterator[str]:
    """Yield how a word's occurrences were grouped."""
    senses = found.senses
    if senses is None:
        return
    yield (
        f"{senses.occurrences:,} texts hold the word, {senses.read:,} were read (layer {senses.layer} of "
        f"{found.model}); groups are of wordings: judge by the lines whether they are senses"
    )
    if senses.silhouettes:
        tried = ", ".join(f"{k}: {score:.2f}" for k, score in senses.silhouettes)
        yield f"silhouette by number of groups: {tried}; below .10 the word is left in one"
    else:
        yield "too few different occurrences to group"
