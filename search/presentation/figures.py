"""Where pictures are drawn: PNG or SVG files that are equal where the figures are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search.errors import DiagnosisError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")


def check_picture(path: Path | None) -> None:
    """Refuse a picture that could not be written, before hours go into what it shows.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or its folder is none.
    """
    if path is None:
        return
    if path.suffix.lower() not in FORMATS:
        message = f"a picture is a {' or '.join(FORMATS)} file, found {path.name!r}"
        raise DiagnosisError(message)
    if not path.resolve().parent.is_dir():
        message = f"cannot write {path}: {path.parent} is no folder; make it, or choose another place"
        raise DiagnosisError(message)


@contextmanager
def picture(path: Path, *, columns: int = 1, width: float = 5.5, height: float = 4.0) -> "Iterator[tuple[Figure, Any]]":
    """Give a figure and its axes (an array of them where there are several columns), and write it when all is drawn.

    Parameters
    ----------
    path
        The file, .png or .svg.
    columns
        Axes side by side.
    width, height
        Of one of them, in inches.

    Raises
    ------
    DiagnosisError
        If the file's ending is neither, or it cannot be written.
    """
    check_picture(path)
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height), layout="constrained")
    FigureCanvasAgg(figure)
    yield figure, figure.subplots(1, columns)
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
    try:
        # A fixed salt and no date: the same figures give the same file. Text stays text.
        with mpl.rc_context({"svg.hashsalt": "twindex", "svg.fonttype": "none"}):
            figure.savefig(path, metadata=metadata, dpi=150)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror or error}; choose another place"
        raise DiagnosisError(message) from error


def legend(axes: Any, **options: Any) -> None:
    """Draw a legend where there is anything to name."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small", **options)
