"""Adding documents to an index and deleting some: the collection it is built from next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corpora.collection import Collection
from corpora.document import Document
from corpora.passages import Window
from corpora.read_log import ReadLog
from indexer.build import BuildSettings
from indexer.errors import IndexerError
from indexer.opening import OpenIndex, open_index


@dataclass(frozen=True, slots=True)
class Revision:
    """What an index is to be built from, and how: as it was built before.

    The documents are those of the index in their order, the ones that share an id with an added one replaced in place,
    the ones to be deleted left out, the other added ones at the end; queries and judgements are as they were.
    """

    collection: Collection
    settings: BuildSettings


def revise(root: Path, *, add: Sequence[Collection] = (), delete: Sequence[str] = (), refit: bool = False) -> Revision:
    """Return what an index becomes when documents are added or deleted; `build_index` then makes it.

    Parameters
    ----------
    root
        The index.
    add
        Collections of documents to add; one whose id the index holds replaces that document.
    delete
        Ids. One that the index does not hold may be several, separated by commas.
    refit
        Make statistics anew, without encoding again.

    Raises
    ------
    IndexerError
        If the folder is no index, or it holds no document of an id that is to be deleted.
    """
    index = open_index(root)
    leave_out = _resolve(index, delete)
    judgements = index.judgements
    manifest = index.manifest

    def read(log: ReadLog) -> Iterator[Document]:
        added = {document.doc_id: document for collection in add for document in collection.documents(log)}
        log.documents = 0  # this collection counts its documents itself
        for document in index.documents.iter_documents():
            replacement = added.pop(document.doc_id, None)
            if replacement is not None:
                yield replacement
            elif document.doc_id not in leave_out:
                yield document
        yield from added.values()

    collection = Collection(
        manifest.collection,
        str(root),
        read,
        judgements.queries,
        judgements.qrels,
        exclude_same_id=manifest.exclude_same_id,
    )
    settings = BuildSettings(
        tuple(record.spec for record in manifest.retrievers),
        refit=refit,
        exact_window=Window(**manifest.window),  # type: ignore[arg-type]
        base=index.generation.root.name,
    )
    return Revision(collection, settings)


def _resolve(index: OpenIndex, delete: Sequence[str]) -> frozenset[str]:
    ids: list[str] = []
    for given in delete:
        ids += [given] if index.documents.holds(given) else [part.strip() for part in given.split(",") if part.strip()]
    missing = [doc_id for doc_id in ids if not index.documents.holds(doc_id)]
    if missing:
        more = f", nor {len(missing) - 1} others" if len(missing) > 1 else ""
        message = f"{index.root} holds no document {missing[0]!r}{more}; nothing was deleted"
        raise IndexerError(message)
    return frozenset(ids)
