"""The senses collection: ambiguous words in context, kept here as a BEIR folder."""

from dataclasses import replace
from pathlib import Path

from corpora.collection import Collection
from corpora.errors import CollectionNotFoundError
from corpora.options import DEFAULT_OPTIONS
from corpora.read_log import ReadLog
from corpora.readers.beir import is_beir, open_beir


def open_senses() -> Collection:
    """Open the senses collection.

    Raises
    ------
    CollectionNotFoundError
        If its files are not installed.
    """
    folder = Path(__file__).with_name("senses")
    if not is_beir(folder):
        message = f"the senses collection is not where it belongs ({folder}); install twindex again"
        raise CollectionNotFoundError(message)
    collection = open_beir(folder, DEFAULT_OPTIONS, ReadLog())
    return replace(collection, name="senses", source="built-in")
