"""CSV and TSV as the world writes them."""

import pytest

from corpora.catalog import open_collection
from corpora.errors import UnreadableFileError
from corpora.options import ReadOptions
from corpora.read_log import ReadLog


def _read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    log = ReadLog()
    return list(open_collection(path, ReadOptions(**options)).documents(log)), log.summary()


def test_field_above_131072_characters_is_read(tmp_path):
    documents, _ = _read(tmp_path / "docs.csv", "id,text\n1," + "x" * 200_000 + "\n")
    assert len(documents[0].text) == 200_000


def test_row_knows_the_line_that_it_begins_on(tmp_path):
    path = tmp_path / "docs.csv"
    documents, _ = _read(path, 'id,text\n1,"two\nlines"\n\n2,b\n')
    assert [document.source for document in documents] == [f"{path}:2", f"{path}:5"]
    assert documents[0].text == "two\nlines"


def test_quotation_mark_never_closed_is_an_error_not_a_swallowed_file(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"docs\.csv:3: a quotation mark is opened and never closed"):
        _read(tmp_path / "docs.csv", 'id,text\n1,a\n2,"b\n3,c\n4,d\n')


def test_sloppy_quotes_are_read_as_other_programs_do(tmp_path):
    documents, summary = _read(tmp_path / "docs.csv", 'id,text\n1,"a"b\n2,c "d" e\n3,f\n')
    assert [document.text for document in documents] == ["ab", 'c "d" e', "f"]
    assert summary.skipped == ()


def test_row_with_too_many_columns_is_skipped_and_with_too_few_is_filled(tmp_path):
    path = tmp_path / "docs.csv"
    documents, summary = _read(path, "id,text,note\n1,a\n2,b,c,d\n3,e,f\n")
    assert [(document.doc_id, document.text) for document in documents] == [("1", "a"), ("3", "e")]
    assert summary.skipped[0].examples == (f"{path}:3: 4 columns, header 3",)


def test_delimiter_is_guessed_and_announced(tmp_path):
    documents, summary = _read(tmp_path / "docs.csv", 'id;"text, all";text\n1;x;a, b\n')
    assert documents[0].text == "a, b"
    assert any("separated by ';'" in note for note in summary.notes)


def test_header_without_names_and_with_equal_names_keeps_every_column(tmp_path):
    documents, _ = _read(tmp_path / "docs.csv", "id,text,,note,note\n1,a,b,c,d\n")
    assert documents[0].metadata == {"column 3": "b", "note": "c", "note (5)": "d"}


def test_unquoted_tsv_may_begin_with_quotation_marks(tmp_path):
    documents, _ = _read(tmp_path / "docs.tsv", 'id\ttext\n1\t"Hello" he said\n2\t"unclosed\n3\tx\n')
    assert [document.text for document in documents] == ['"Hello" he said', '"unclosed', "x"]


def test_quoted_tsv_fields_hold_tabs_lines_and_quotes(tmp_path):
    documents, _ = _read(tmp_path / "docs.tsv", 'id\ttext\n1\t"a\tb\nc ""d"""\n2\t"whole"\n')
    assert [document.text for document in documents] == ['a\tb\nc "d"', "whole"]


def test_unclosed_quotes_in_a_tsv_keep_every_row_in_order(tmp_path):
    rows = ['"open', "plain", '"open again', '"a" b', "x", '"last']
    content = "id\ttext\n" + "".join(f"{number}\t{text}\n" for number, text in enumerate(rows))
    documents, _ = _read(tmp_path / "docs.tsv", content)
    assert [(document.doc_id, document.text) for document in documents] == [
        (str(number), text) for number, text in enumerate(rows)
    ]


@pytest.mark.parametrize("name", ["docs.csv", "docs.tsv"])
@pytest.mark.parametrize("content", ["", "id,text\n", "\n\n\n", "\ufeff", "id\ttext"])
def test_table_without_rows_gives_no_documents(tmp_path, name, content):
    documents, _ = _read(tmp_path / name, content)
    assert documents == []


def test_excel_unicode_text_is_read(tmp_path):
    documents, _ = _read(tmp_path / "docs.tsv", "id\ttext\r\n1\tGröße 🤝\r\n".encode("utf-16"))
    assert documents[0].text == "Größe 🤝"


def test_binary_under_the_name_csv_is_refused(tmp_path):
    with pytest.raises(UnreadableFileError, match="binary, where text was expected"):
        _read(tmp_path / "docs.csv", b"PK\3\4\0\0\0\0\1\2")
