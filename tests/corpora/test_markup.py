"""Markdown and reStructuredText to what a reader sees."""

import time

import pytest

from corpora.readers.markup import from_markdown, from_rest


def test_markdown():
    source = (
        '---\ntitle: Front\n---\n# Heading *one*\n\nA [link](http://x.y "t") and ![image](i.png), `code`,\n'
        "**bold** snake_case.\n\n"
        "> quoted\n> - item\n1. first\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n"
        "| 1 | 2 |\n\n[ref]: http://z\nend<br>\n"
    )
    titled = from_markdown(source)
    assert titled.title == "Front"
    assert titled.text == (
        "Heading one\n\nA link and image, code,\nbold snake_case.\n\nquoted\nitem\nfirst\n\nx = 1\n\n"
        "a   b\n1   2\n\nend"
    )


def test_markdown_title_is_its_first_heading():
    assert from_markdown("Intro\n\n## Two ##\ntext") == ("Two", "Intro\n\ntext")
    assert from_markdown("Under\n=====\ntext") == ("Under", "text")


def test_rest():
    source = (
        "=====\nTitle\n=====\n\n.. _anchor:\n\nSee :ref:`the bank <bank>` and ``code``, `link <http://x>`_.\n"
        "\nPart\n----\n\n.. note:: Mind the gap.\n   :class: x\n\n* **item**\n"
    )
    assert from_rest(source) == (
        "Title",
        "See the bank and code, link.\n\nPart\n\nMind the gap.\n\nitem",
    )


@pytest.mark.parametrize("unit", ["[", "[a](", "<a ", "`", "*", ":a:`", "| ", "![", "> ", "- ", "#", "=", "<!--", "_"])
@pytest.mark.parametrize("convert", [from_markdown, from_rest])
def test_no_input_takes_more_than_linear_time(unit, convert):
    started = time.process_time()
    convert(unit * (200_000 // len(unit)))
    assert time.process_time() - started < 3
