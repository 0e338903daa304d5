"""What a test of similarity measures, opened by name: a static table, a model's layers, a model's output."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from corpora.collection import Collection
from corpora.progress import Progress
from indexer.contextual.checkpoint import TransformerSpec
from indexer.contextual.elmo_layers import ElmoLayers
from indexer.contextual.transformer import open_transformer
from indexer.encoder import Encoder
from indexer.static.averaging import AveragedEncoder
from indexer.static.corpus_table import for_corpus
from indexer.static.tokenizer import words
from indexer.static.weights import Weighting, count_words
from indexer.static.word_vectors import Word2VecTraining, WordVectors, load_word_vectors, train_word2vec
from search.diagnostics.layer_models import open_layer_model
from search.diagnostics.text_similarity import Candidates
from search.errors import DiagnosisError


def open_candidates(
    texts: Sequence[str],
    *,
    progress: Progress,
    static: str = "glove",
    corpus: Collection | None = None,
    model: str = "",
    only_static: bool = False,
    trust_pickle: bool = False,
) -> Candidates:
    """Open what is to be measured.

    Parameters
    ----------
    texts
        All texts that will be encoded; of the static table their words are kept.
    progress
        Told of reading and training.
    static
        `glove`, `word2vec` (trained on `corpus`), or a file of word vectors.
    corpus
        What word2vec is trained on, its background texts among it.
    model
        A folder (of a transformer, or of ELMo's published files) or hub id; "" for the built-in model.
    only_static
        Whether to leave the model out.
    trust_pickle
        Whether word vectors that are pickles may be loaded.

    Raises
    ------
    ModelError
        If a table or model cannot be read.
    DiagnosisError
        If word2vec has nothing to be trained on.
    """
    if static == "word2vec":
        if corpus is None:
            message = "word2vec is trained on a collection; name one: --corpus COLLECTION"
            raise DiagnosisError(message)
        vectors = trained(corpus, progress)
    else:
        vectors = load_word_vectors(static, trust_pickle=trust_pickle, progress=progress)
    table = averaging(vectors, texts)
    if only_static:
        return Candidates(static=table, static_name=vectors.name)
    layers = open_layer_model(model)
    if isinstance(layers, ElmoLayers):
        output: Encoder = layers.encoder
        name = f"{Path(model).resolve().name}, layers mixed"
    else:
        transformer = open_transformer(TransformerSpec(model=model), progress)
        output, name = transformer, f"{Path(transformer.space.model).name}, output"
    return Candidates(static=table, layers=layers, output=output, static_name=vectors.name, output_name=name)


def averaging(vectors: WordVectors, texts: Sequence[str]) -> AveragedEncoder:
    """Return the encoder that gives a text the plain mean of its words' vectors, for the words of these texts."""
    return for_corpus(vectors, count_words([texts]), weighting=Weighting.UNIFORM, frequent=0)


def trained(corpus: Collection, progress: Progress, training: Word2VecTraining | None = None) -> WordVectors:
    """Return word2vec trained on a collection's documents and background texts, the same at every run."""
    documents = chain(corpus.documents(), corpus.background())
    texts = [words(document.searchable_text) for document in documents]
    return train_word2vec(lambda: iter(texts), training, progress=progress)
