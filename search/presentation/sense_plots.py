"""Words and texts in context as pictures: by layer, by probe, by context, and from one space into another."""

from pathlib import Path

from search.diagnostics.collection_contexts import ContextReport
from search.diagnostics.collection_portability import CollectionPortability
from search.diagnostics.context_dependence import ContextDependence
from search.diagnostics.probe import Probe
from search.diagnostics.senses import SenseContext, SenseReport
from search.diagnostics.word_in_context import SenseEvaluation
from search.presentation.figures import legend, picture
from search.presentation.summaries import size

_LABEL = 28
_MOST_NAMED = 4


def plot_senses(report: SenseReport, path: Path) -> None:
    """Draw the cosine of each pair of contexts by layer, the static vector's flat line beside them.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither .png nor .svg, or it cannot be written.
    """
    with picture(path, width=6.5) as (_, axes):
        layers = [layer.layer for layer in report.layers]
        if report.static_cosine is not None:
            axes.axhline(report.static_cosine, color="grey", linestyle="--", label="one static vector")
        named = len(report.contexts) <= _MOST_NAMED
        for pair in report.pairs:
            ends = (_short(report.contexts[place], place, named=named) for place in (pair.first, pair.second))
            axes.plot(layers, pair.cosines, marker="o", markersize=4, label=" / ".join(ends))
        anisotropy = [layer.anisotropy for layer in report.layers]
        axes.fill_between(layers, 0.0, anisotropy, color="grey", alpha=0.25, linewidth=0, label="random tokens")
        if report.parting_layer is not None:
            axes.axvline(report.parting_layer, color="black", linestyle=":", linewidth=1, label="where they part")
        axes.set(xlabel="layer", ylabel="cosine", xticks=layers, ylim=(min(0.0, *anisotropy), 1.05))
        axes.set_title(f"the vectors of “{report.word}”, {report.model}", fontsize="medium")
        legend(axes, loc="best")


def _short(context: SenseContext, place: int, *, named: bool) -> str:
    """Return a context by its words around the word in question, or by its number where there are many."""
    if not named:
        return str(place + 1)
    text = " ".join(context.text.split())
    if len(text) <= _LABEL:
        return f"“{text}”"
    start = max(0, min(context.start - _LABEL // 2, len(text) - _LABEL))
    return f"“…{text[start : start + _LABEL].strip()}…”" if start else f"“{text[:_LABEL].strip()}…”"


def plot_probe(found: Probe, path: Path) -> None:
    """Draw what the probe reads by layer, and beside it the cosines within a sense and between senses.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither .png nor .svg, or it cannot be written.
    """
    layers = [layer.layer for layer in found.layers]
    with picture(path, columns=2) as (_, (left, right)):
        left.plot(layers, [layer.same for layer in found.layers], marker="o", label="one sense")
        left.plot(layers, [layer.different for layer in found.layers], marker="o", label="two senses")
        left.set(xlabel="layer", ylabel="mean cosine of a word's vectors", xticks=layers, ylim=(0.0, 1.0))
        error = found.standard_error
        accuracy = [layer.accuracy for layer in found.layers]
        right.errorbar(layers, accuracy, yerr=error, marker="o", capsize=3, label="probe, one standard error")
        areas = [layer.cosine_auc for layer in found.layers]
        right.plot(layers, areas, marker="s", linestyle="-.", label="cosine (AUC; .5 is chance)")
        right.axhline(found.majority, color="grey", linestyle="--", label="always the commonest")
        right.set(xlabel="layer", ylabel="share right", xticks=layers, ylim=(0.0, 1.0))
        for axes in (left, right):
            legend(axes, loc="lower left")


def plot_accuracy(found: SenseEvaluation, path: Path) -> None:
    """Draw how often each layer tells whether a word means the same twice, the static table's line beside it.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither .png nor .svg, or it cannot be written.
    """
    layers = [layer.layer for layer in found.layers]
    with picture(path) as (_, axes):
        error = 0.5 / found.pairs**0.5
        accuracy = [layer.accuracy for layer in found.layers]
        axes.errorbar(layers, accuracy, yerr=error, marker="o", capsize=3, label="layer, one standard error")
        if found.static is not None:
            axes.axhline(found.static.accuracy, color="tab:orange", linestyle="--", label="static table")
        axes.axhline(found.majority, color="grey", linestyle=":", label="one answer for all")
        axes.set(xlabel="layer", ylabel=f"share right of {found.pairs:,} pairs", xticks=layers)
        legend(axes)


def plot_contexts(report: ContextReport, path: Path) -> None:
    """Draw how the number of distinct contexts grows with the text read.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither .png nor .svg, or it cannot be written.
    """
    with picture(path, width=6.5) as (_, axes):
        marks = [mark.tokens for mark in report.survey.counts[0].growth]
        axes.plot(marks, marks, color="grey", linestyle="--", label="a row for every word read")
        for count in reversed(report.survey.counts):
            sides = f"{count.window} {'word' if count.window == 1 else 'words'} either side"
            tokens, contexts = zip(*count.growth, strict=True)
            name = sides if count.window else "the word alone"
            axes.plot(tokens, contexts, marker="o", markersize=3, label=name)
        # What the same rows weigh, and at how many of them the model is the lighter one.
        row = report.dimension * 4
        model = report.costs.model_bytes
        if model / row < 2 * max(marks):
            axes.axhline(model / row, color="black", linestyle=":", label=f"the model ({size(model)})")
        other = axes.secondary_yaxis(
            "right", functions=(lambda rows: rows * row / 1e6, lambda weight: weight * 1e6 / row)
        )
        other.set_ylabel(f"MB at {report.dimension} float32 a row")
        axes.set(xlabel="words read", ylabel="rows of the table", xlim=(0, None), ylim=(0, None))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(f"words in context, {report.collection}", fontsize="medium")
        legend(axes, loc="upper left")


def plot_dependence(found: ContextDependence, path: Path) -> None:
    """Draw the most context-dependent and the most stable words of a corpus as bars, and all words between as a curve.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither .png nor .svg, or it cannot be written.
    """
    ends = {each.word: each.self_similarity for each in (*found.dependent, *reversed(found.stable))}
    with picture(path, columns=2) as (_, (left, right)):
        colours = ["tab:orange"] * len(found.dependent) + ["tab:blue"] * (len(ends) - len(found.dependent))
        left.barh(list(ends), list(ends.values()), color=colours)
        left.invert_yaxis()
        left.tick_params(axis="y", labelsize="small")
        left.set(xlabel="self-similarity, less that of random tokens")
        right.hist(found.self_similarities, bins=30, color="tab:grey")
        right.set(xlabel="self-similarity, less that of random tokens", ylabel=f"of {found.words:,} words")


def plot_portability(found: CollectionPortability, path: Path) -> None:
    """Draw recall of foreign queries by how many shared texts their map was fitted on, into one PNG or SVG file.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or it cannot be written.
    """
    spaces = [*found.layers, found.unwhitened, *([found.other] if found.other is not None else [])]
    home = found.layers[-1].asked
    with picture(path, width=9.0, height=4.5) as (_, axes):
        for place, space in enumerate(spaces):
            colour = f"C{place}"
            texts, recalls = [each.texts for each in space.asked.mapped], [each.recall for each in space.asked.mapped]
            axes.plot(texts, recalls, marker="o", markersize=4, color=colour, label=space.name)
            if space.asked.foreign is not None and texts:
                # Where the line would be without a map: a mark at the left edge, in the same colour.
                axes.plot(texts[0] / 2, space.asked.foreign, marker=">", color=colour)
        axes.axhline(home.home, color="grey", linestyle="--", label="at home")
        axes.axhline(home.chance, color="grey", linestyle=":", label="a random order")
        axes.set(xlabel="texts that the map is fitted on (triangles: no map)", ylabel=f"recall@{home.k}", xscale="log")
        axes.set_ylim(bottom=0.0)
        axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.01, 0.5))
