import pytest

from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.states import open_states
from search.diagnostics.senses import sense_report
from search.errors import DiagnosisError
from search.presentation.sense_plots import plot_senses


def test_a_curve_is_drawn_and_other_formats_are_refused(tiny_transformers, tmp_path):
    reader = open_states(TransformerSpec(str(tiny_transformers["plain"])))
    report = sense_report("bank", ["the river bank", "my bank account"], reader, background=["my boat", "a river"])
    plot_senses(report, tmp_path / "bank.svg")
    plot_senses(report, tmp_path / "bank.png")
    assert "<svg" in (tmp_path / "bank.svg").read_text(encoding="utf-8")
    assert (tmp_path / "bank.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(DiagnosisError, match=r"a \.png or \.svg file"):
        plot_senses(report, tmp_path / "bank.gif")
    with pytest.raises(DiagnosisError, match="is no folder"):
        plot_senses(report, tmp_path / "nowhere" / "bank.svg")
