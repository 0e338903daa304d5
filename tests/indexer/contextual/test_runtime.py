import os
import sys

from indexer.contextual import runtime


def test_the_cache_is_where_the_user_said(monkeypatch, tmp_path):
    monkeypatch.setenv("TWINDEX_CACHE", str(tmp_path / "chosen"))
    assert runtime.cache_folder() == tmp_path / "chosen"
    if sys.platform == "linux":
        monkeypatch.delenv("TWINDEX_CACHE")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert runtime.cache_folder() == tmp_path / "xdg" / "twindex"


def test_the_cache_keeps_what_was_used_last(tmp_path):
    for number in range(6):
        path = tmp_path / f"{number}.blob"
        path.write_text("x" * 10)
        os.utime(path, (1000 + number % 4, 1000))
    (tmp_path / "other").write_text("")
    runtime.prune(tmp_path, most_bytes=35)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.blob", "3.blob", "5.blob", "other"]
