"""A word's cosines between contexts, layer by layer, as a picture."""

from pathlib import Path

from search.diagnostics.senses import SenseReport
from search.errors import DiagnosisError


def plot_senses(report: SenseReport, path: Path) -> None:
    """Draw the cosine of each pair of contexts by layer, the static vector's flat line beside them (PNG or SVG).

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or it cannot be written.
    """
    if path.suffix.lower() not in {".png", ".svg"}:
        message = f"{path}: a picture's name ends in .png or .svg"
        raise DiagnosisError(message)
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    layers = [layer.layer for layer in report.layers]
    for pair in report.pairs:
        axes.plot(layers, pair.cosines, marker="o", label=f"contexts {pair.first + 1} and {pair.second + 1}")
    axes.plot(layers, [layer.anisotropy for layer in report.layers], linestyle=":", label="random tokens")
    if report.static_cosine is not None:
        axes.axhline(report.static_cosine, color="grey", linestyle="--", label="static vector")
    axes.set_xlabel("layer")
    axes.set_ylabel(f"cosine between the vectors of {report.word!r}")
    axes.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise DiagnosisError(message) from error
