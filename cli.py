"""The command line: parses, calls, prints. All work is done by corpora, indexer and search."""

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="twindex",
    help="Search one corpus with static and contextual embeddings side by side, and see what each costs and is worth.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

IndexPath = Annotated[Path, typer.Argument(metavar="INDEX", help="Folder written by `twindex index`.")]
CollectionName = Annotated[
    str,
    typer.Argument(metavar="COLLECTION", help="BEIR folder, folder of files, record file, or built-in name."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Retrievers = Annotated[
    list[str] | None,
    typer.Option("--retrievers", "-r", help="Which retrievers, comma-separated; default: all of the index."),
]
Splits = Annotated[str, typer.Option(help="Which split of the judgements.")]


def _out() -> Any:
    from rich.console import Console

    # Off a terminal there is no width to keep to: lines are as long as what they say.
    return Console() if sys.stdout.isatty() else Console(width=160)


def _err() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _print_json(value: object) -> None:
    import json

    # Escapes keep the document whole on terminals of any encoding.
    sys.stdout.write(json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n")


def _names(retrievers: list[str] | None) -> list[str] | None:
    return [name.strip() for item in retrievers for name in item.split(",") if name.strip()] if retrievers else None


@app.command()
def index(
    collection: CollectionName,
    target: Annotated[Path | None, typer.Argument(metavar="INDEX", help="Folder to write the index into.")] = None,
    retrievers: Annotated[
        list[str] | None,
        typer.Option("--retrievers", "-r", help="Retrievers, comma-separated: [NAME=]ENCODER[:option=value,...]."),
    ] = None,
    static: Annotated[str, typer.Option(help="Word vectors: glove, word2vec, fasttext, or a file.")] = "glove",
    model: Annotated[str, typer.Option(help="Contextual model: a folder or hub id; default: all-MiniLM-L6-v2.")] = "",
    layer: Annotated[
        str, typer.Option(help="Layer of the model to read, 0 being its embeddings; default: its output.")
    ] = "",
    pooling: Annotated[str, typer.Option(help="mean, cls, max or first-last; default: the model's own.")] = "",
    whitening: Annotated[str, typer.Option(help="auto, none, a rank or a shrinkage, for `whitened`.")] = "auto",
    precision: Annotated[str, typer.Option(help="int8, bf16 or fp32.")] = "int8",
    backend: Annotated[str, typer.Option(help="openvino (compiled) or torch (the reference).")] = "openvino",
    query_prompt: Annotated[
        str, typer.Option(help='Put before queries, such as "query: "; default: what the model configures.')
    ] = "",
    document_prompt: Annotated[str, typer.Option(help="Put before documents; default: the model's own.")] = "",
    window: Annotated[str, typer.Option(help="Word pieces a passage may have, or off: one passage, cut.")] = "256",
    overlap: Annotated[int, typer.Option(help="Word pieces that neighbouring passages share.", min=0)] = 32,
    factory: Annotated[str, typer.Option(help="FAISS index factory string.")] = "",
    fit_share: Annotated[
        float, typer.Option(help="Share of the passages that `fitted` learns from.", min=1e-6, max=1.0)
    ] = 1.0,
    limit: Annotated[int | None, typer.Option(help="Read only so many documents.", min=1)] = None,
    id_field: Annotated[str, typer.Option(help="Field of a record that holds its id; default: guessed.")] = "",
    title_field: Annotated[str, typer.Option(help="Field that holds the title.")] = "",
    text_field: Annotated[list[str] | None, typer.Option(help="Field that holds text; may be repeated.")] = None,
    metadata_field: Annotated[
        list[str] | None, typer.Option(help="Field kept as metadata; may be repeated; default: all others.")
    ] = None,
    include: Annotated[list[str] | None, typer.Option(help="Glob of files to read below a folder.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Glob of files to pass over.")] = None,
    hidden: Annotated[bool, typer.Option(help="Read files whose names begin with a dot, too.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of text files; default: detected.")] = "",
    duplicates: Annotated[
        str, typer.Option(help="What to do with an id that occurs twice: refuse, first or last.")
    ] = "refuse",
    strict: Annotated[bool, typer.Option(help="Stop at the first record that cannot be read.")] = False,
    trust_pickle: Annotated[
        bool, typer.Option(help="Load word vectors or weights that are pickles (they can run code).")
    ] = False,
    add: Annotated[
        list[str] | None,
        typer.Option(help="Add a collection's documents to the one index named: twindex index INDEX --add COLLECTION."),
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(metavar="IDS", help="Delete documents of the one index named; ids separated by commas."),
    ] = None,
    refit: Annotated[
        bool, typer.Option(help="Make idf, whitening and fitted tables anew instead of keeping an earlier build's.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index a collection with several retrievers, over whatever INDEX held; unchanged texts keep their vectors."""
    from corpora.catalog import open_collection
    from corpora.options import Duplicates, ReadOptions
    from corpora.read_log import ReadLog
    from indexer.build import BuildSettings, build_index
    from indexer.revision import revise
    from indexer.spec import DEFAULT_RETRIEVERS, parse_retrievers
    from search.presentation.summaries import build_json, build_lines, cost_rows
    from search.presentation.terminal import progress_on, table_view

    defaults = {
        "vectors": static,
        "model": model,
        "layer": layer,
        "pooling": pooling,
        "precision": precision,
        "backend": backend,
        "query-prompt": query_prompt,
        "document-prompt": document_prompt,
        "factory": factory,
        "share": "" if fit_share == 1.0 else str(fit_share),
    }
    specs = parse_retrievers(retrievers or DEFAULT_RETRIEVERS, defaults, whitening=whitening)
    settings = BuildSettings(
        tuple(specs), _window(window), overlap, limit=limit, trust_pickle=trust_pickle, refit=refit
    )
    options = ReadOptions(
        id_field=id_field or None,
        title_field=title_field or None,
        text_fields=tuple(text_field or ()),
        metadata_fields=tuple(metadata_field) if metadata_field else None,
        encoding=encoding or None,
        duplicates=_choice(Duplicates, duplicates, "--duplicates"),
        include=tuple(include or ()),
        exclude=tuple(exclude or ()),
        hidden=hidden,
    )
    log = ReadLog(strict=strict)
    if target is None:
        if not (add or delete or refit):
            message = "two names are needed, COLLECTION and INDEX; one alone is an index to --add to or --delete from"
            raise typer.BadParameter(message)
        target = Path(collection)
        more = [open_collection(name, options, log=log) for name in add or ()]
        revision = revise(target, add=more, delete=delete or (), refit=refit)
        source, settings = revision.collection, replace(revision.settings, trust_pickle=trust_pickle)
    elif add or delete:
        message = "--add and --delete change one index: twindex index INDEX --add COLLECTION --delete IDS"
        raise typer.BadParameter(message)
    else:
        source = open_collection(collection, options, log=log)
    with progress_on(_err()) as progress:
        summary = build_index(source, target, settings, progress=progress, log=log)
    if as_json:
        _print_json(build_json(summary))
        return
    costs = {name: asdict(cost) for name, cost in summary.costs.items()}
    _out().print(table_view(cost_rows(costs), "what building took", build_lines(summary, target)))


def _window(text: str) -> int | None:
    if text.strip().lower() == "off":
        return None
    if not text.strip().isdecimal() or int(text) < 3:
        message = f"--window takes a number of word pieces (3 or more) or off, found {text!r}"
        raise typer.BadParameter(message)
    return int(text)


def _choice(kind: type[StrEnum], text: str, option: str) -> Any:
    try:
        return kind(text)
    except ValueError:
        message = f"{option} takes one of {', '.join(kind)}, found {text!r}"
        raise typer.BadParameter(message) from None


@app.command()
def query(
    index_path: IndexPath,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The query; - reads queries from stdin.")] = None,
    k: Annotated[int, typer.Option("-k", help="Hits of each retriever.", min=1)] = 10,
    retrievers: Retrievers = None,
    qid: Annotated[str, typer.Option(help="Ask a judged query of the collection by its id.")] = "",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Only documents whose metadata says field=value; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask all retrievers one question, or open a prompt."""
    from search.presentation.prompt import query_stream
    from search.retrieval.searcher import Searcher

    searcher = Searcher.open(index_path, _names(retrievers))
    selection = searcher.select(filters or ())
    if qid or (text is not None and text != "-"):
        _answer(searcher, text or "", qid, k, selection, as_json)
        return
    if text is None and sys.stdin.isatty():
        _prompt(lambda line: _answer(searcher, line, "", k, selection, as_json))
        return
    for line in query_stream(sys.stdin):
        _answer(searcher, line, "", k, selection, as_json)
        sys.stdout.flush()


def _answer(searcher: Any, text: str, qid: str, k: int, selection: Any, as_json: bool) -> None:
    from search.asking import ask

    asked = ask(searcher, text, query_id=qid, k=k, selection=selection)
    if as_json:
        _print_json(asked.to_json())
        return
    from search.presentation.terminal import comparison_view

    console = _out()
    console.print(comparison_view(asked, shown=k))
    for note in asked.notes:
        _err().print(note, style="yellow", markup=False, soft_wrap=True)


def _prompt(answer: Callable[[str], None]) -> None:
    from search.errors import SearchError
    from search.presentation.prompt import prompt_lines

    for line in prompt_lines():
        try:
            answer(line)
        except SearchError as error:
            _err().print(str(error), style="red", markup=False, soft_wrap=True)


@app.command()
def evaluate(
    targets: Annotated[
        list[Path], typer.Argument(metavar="INDEX", help="An index; with --qrels, TREC run files of any system.")
    ],
    collection: Annotated[str, typer.Option(help="Use the queries and judgements of this collection.")] = "",
    split: Splits = "test",
    measures: Annotated[str, typer.Option(help="ir-measures names, comma-separated.")] = "nDCG@10,RR,AP,R@100",
    retrievers: Retrievers = None,
    baseline: Annotated[str, typer.Option(help="Row to test the others against; default: bm25, else the first.")] = "",
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements (TREC or BEIR form) for run files, or in place of the index's own.")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="With --qrels: the queries, one a line or JSONL; default: the index's.")
    ] = None,
    runs: Annotated[Path | None, typer.Option(help="Write TREC runs and per-query scores here.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write one self-contained HTML page here.")] = None,
    pictures: Annotated[Path | None, typer.Option(help="With --report: its pictures as files in this folder.")] = None,
    price_per_hour: Annotated[
        float | None, typer.Option(help="What this machine costs an hour: adds money per million.", min=0)
    ] = None,
    unjudged: Annotated[bool, typer.Option(help="No judgements: agreement, and queries cut from documents.")] = False,
    expect: Annotated[
        list[str] | None,
        typer.Option(help='Exit 1 unless so: "contextual:nDCG@10=0.645+-0.005"; may be repeated.'),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure quality and cost of every retriever on the collection's judgements."""
    from search.presentation.terminal import evaluation_view, progress_on

    if expect:
        from search.evaluation.expectations import parse_expectation

        # Read before anything runs: a typing error should not cost an evaluation.
        measures = ",".join([measures, *(parse_expectation(one).measure for one in expect)])
    on_runs = qrels is not None and not (len(targets) == 1 and targets[0].is_dir())
    ignored = {
        "--queries": queries is not None and qrels is None,
        "--pictures": pictures is not None and report is None,
        "--collection": bool(collection) and (unjudged or qrels is not None),
        "--retrievers": retrievers is not None and on_runs,
        "--price-per-hour": price_per_hour is not None and (on_runs or unjudged),
        "--unjudged": unjudged and qrels is not None,
        "--runs": runs is not None and unjudged,
        "--report": report is not None and unjudged,
        "--baseline": bool(baseline) and unjudged,
    }
    if any(ignored.values()):
        message = f"{', '.join(name for name, is_so in ignored.items() if is_so)} would do nothing in this call"
        raise typer.BadParameter(message)
    if len(targets) != 1 and not on_runs:
        message = "give one index, or run files together with --qrels FILE"
        raise typer.BadParameter(message)
    if unjudged:
        _evaluate_unjudged(targets[0], measures, retrievers, expect or [], as_json)
        return
    with progress_on(_err()) as progress:
        if on_runs and qrels is not None:
            evaluation = _evaluate_runs(targets, qrels, queries, (measures, baseline), (runs, report, pictures))
        else:
            from corpora.catalog import open_collection
            from search.measuring import judged_by, measure_index
            from search.retrieval.searcher import Searcher

            searcher = Searcher.open(targets[0], _names(retrievers))
            evaluation, found = measure_index(
                searcher,
                progress=progress,
                collection=open_collection(collection) if collection else None,
                judgements=judged_by(searcher, qrels, queries) if qrels is not None else None,
                split=qrels.stem if qrels is not None else split,
                measures=measures,
                baseline=baseline,
                runs=runs,
                price_per_hour=price_per_hour,
            )
            if report is not None:
                from search.reporting import report_index

                report_index(searcher, evaluation, found, report, progress=progress, pictures=pictures)
    if as_json:
        _print_json(evaluation.to_json())
    else:
        _out().print(evaluation_view(evaluation))
    _check_expectations(evaluation, expect or [])


def _evaluate_runs(
    targets: list[Path],
    qrels: Path,
    queries: Path | None,
    how: tuple[str, str],
    written: tuple[Path | None, Path | None, Path | None],
) -> Any:
    from search.measuring import measure_runs

    measures, baseline = how
    runs, report, pictures = written
    evaluation, found = measure_runs(targets, qrels, queries=queries, measures=measures, baseline=baseline, runs=runs)
    if report is not None:
        from search.reporting import report_runs

        report_runs(evaluation, found, report, pictures=pictures)
    return evaluation


def _evaluate_unjudged(
    index_path: Path, measures: str, retrievers: list[str] | None, expect: list[str], as_json: bool
) -> None:
    from search.known_item_search import agreement_rows, evaluate_unjudged
    from search.presentation.terminal import evaluation_view, progress_on, table_view
    from search.retrieval.searcher import Searcher

    searcher = Searcher.open(index_path, _names(retrievers))
    with progress_on(_err()) as progress:
        found = evaluate_unjudged(searcher, progress=progress, measures=measures)
    if as_json:
        _print_json(found.to_json())
    else:
        console = _out()
        console.print(table_view(list(agreement_rows(found.agreements)), "how far the retrievers agree", ()))
        console.print(evaluation_view(found.evaluation, "known-item search", found.notes))
    _check_expectations(found.evaluation, expect)


@app.command()
def advise(
    index_path: IndexPath,
    split: Splits = "test",
    measure: Annotated[str, typer.Option(help="The measure that decides.")] = "nDCG@10",
    retrievers: Retrievers = None,
    query_ms: Annotated[float | None, typer.Option(help="Most milliseconds a query may take.", min=0)] = None,
    bytes_per_text: Annotated[float | None, typer.Option(help="Most bytes a text may take.", min=0)] = None,
    index_seconds: Annotated[float | None, typer.Option(help="Most seconds that indexing may take.", min=0)] = None,
    price_per_hour: Annotated[float | None, typer.Option(help="What this machine costs an hour.", min=0)] = None,
    as_json: AsJson = False,
) -> None:
    """Say in five lines which retriever to take within a budget, and what would change the answer."""
    from search.evaluation.advice import Budget, advise
    from search.measuring import measure_index
    from search.presentation.terminal import progress_on
    from search.retrieval.searcher import Searcher

    searcher = Searcher.open(index_path, _names(retrievers))
    with progress_on(_err()) as progress:
        evaluation, _ = measure_index(
            searcher, progress=progress, split=split, measures=measure, price_per_hour=price_per_hour
        )
    advice = advise(evaluation, Budget(query_ms, bytes_per_text, index_seconds))
    if as_json:
        _print_json(advice.to_json())
    else:
        for line in advice.lines:
            _out().print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def judge(
    index_path: IndexPath,
    qrels: Annotated[Path, typer.Argument(metavar="QRELS", help="Judgements file to write, or to go on with.")],
    queries: Annotated[
        Path | None, typer.Option(help="Queries, one a line or JSONL; default: those of the index.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Hits of each retriever that are pooled.", min=1)] = 10,
    retrievers: Retrievers = None,
    seed: Annotated[int, typer.Option(help="Seed of the random order.")] = 0,
) -> None:
    """Judge pooled hits in random order: y, n or a grade; s skips, u takes back, q ends. Resumes where it stopped."""
    from search.judging_session import open_judging, questions
    from search.presentation.terminal import question_view
    from search.retrieval.searcher import Searcher

    searcher = Searcher.open(index_path, _names(retrievers))
    session = open_judging(searcher, qrels, queries=queries, depth=depth, seed=seed)
    console = _out()
    for question in questions(session, lambda: typer.prompt("relevant? (y/n/0-9, s, u, q)", prompt_suffix=" ")):
        console.print(question_view(question))
    console.print(f"{session.judging.judged:,} of {session.judging.total:,} judged; {qrels}", markup=False)
    if session.judging.judged:
        named = f" --queries {queries}" if queries is not None else ""
        console.print(f"next: twindex evaluate {index_path} --qrels {qrels}{named}", markup=False, soft_wrap=True)


def _check_expectations(evaluation: Any, expect: list[str]) -> None:
    if not expect:
        return
    from search.evaluation.expectations import check_expectations

    failures = check_expectations(evaluation, expect)
    for failure in failures:
        _err().print(failure, style="red", markup=False, soft_wrap=True)
    if failures:
        raise typer.Exit(1)


collections_app = typer.Typer(
    help="List the built-in collections; survey or export any collection.", no_args_is_help=True
)
app.add_typer(collections_app, name="collections")


@collections_app.command("list")
def list_collections(as_json: AsJson = False) -> None:
    """List the collections that come with twindex."""
    from corpora.catalog import BUILTIN
    from search.presentation.terminal import key_values

    described = {name: built_in.description for name, built_in in BUILTIN.items()}
    if as_json:
        _print_json({"collections": described})
    else:
        _out().print(key_values(described.items()))


@collections_app.command("show")
def show_collection(collection: CollectionName, as_json: AsJson = False) -> None:
    """Show what a collection is like and about what indexing it would take."""
    from corpora.catalog import open_collection
    from search.presentation.surveys import estimate_rows, survey_json, survey_pairs
    from search.presentation.terminal import key_values, progress_on, table_view
    from search.surveying import survey_with_estimates

    with progress_on(_err()) as progress:
        found, estimates = survey_with_estimates(open_collection(collection), progress)
    if as_json:
        _print_json(survey_json(found, estimates))
        return
    console = _out()
    console.print(key_values(survey_pairs(found)))
    console.print(table_view(estimate_rows(estimates), "indexing it here would take about", ()))


@collections_app.command("export")
def export_collection(
    collection: CollectionName, folder: Annotated[Path, typer.Argument(help="New folder for the BEIR files.")]
) -> None:
    """Write a collection as a BEIR folder: corpus.jsonl, queries.jsonl, qrels/."""
    from corpora.catalog import open_collection
    from corpora.export import export_beir

    count = export_beir(open_collection(collection), folder)
    sys.stdout.write(f"{count:,} documents written to {folder}\n")


@app.command()
def info(index_path: IndexPath, as_json: AsJson = False) -> None:
    """Show what an index holds and what it cost."""
    from indexer.opening import open_index
    from search.presentation.summaries import cost_rows, info_json, info_pairs
    from search.presentation.terminal import key_values, table_view

    opened = open_index(index_path)
    if as_json:
        _print_json(info_json(opened))
        return
    console = _out()
    console.print(key_values(info_pairs(opened)))
    console.print(table_view(cost_rows(opened.cost), "what building took", ()))


@app.command()
def geometry(
    index_path: IndexPath,
    retrievers: Retrievers = None,
    sample: Annotated[int, typer.Option(help="Most texts to look at.", min=2)] = 5000,
    seed: Annotated[int, typer.Option(help="Chooses texts and pairs.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw cosines and spectra here (.png or .svg).")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the spaces of an index: anisotropy, effective dimensions, hubs, and what whitening did to them."""
    from indexer.opening import open_index
    from search.diagnostics.index_geometry import geometry_rows, histogram_line, index_geometry
    from search.presentation.terminal import progress_on, table_view

    opened = open_index(index_path)
    names = _names(retrievers) or [record.name for record in opened.manifest.retrievers]
    with progress_on(_err()) as progress:
        reports = index_geometry(opened, names, progress=progress, sample=sample, seed=seed)
    if plot is not None:
        from search.presentation.geometry_plots import plot_geometry

        spaces = {f"{name}, before": report.before for name, report in reports.items() if report.before is not None}
        plot_geometry({**spaces, **{name: report.searched for name, report in reports.items()}}, plot)
    if as_json:
        _print_json({"retrievers": {name: report.to_json() for name, report in reports.items()}})
        return
    lines = [f"{name:<14} -1 |{histogram_line(report.searched)}| 1" for name, report in reports.items()]
    notes = ["cosines of random pairs:", *lines]
    notes += [f"{name}: {note}" for name, report in reports.items() for note in report.searched.notes]
    _out().print(table_view(list(geometry_rows(reports)), f"spaces of {index_path}", notes))


@app.command()
def explain(
    index_path: IndexPath,
    text: Annotated[str, typer.Argument(metavar="QUERY", help="The query.")],
    doc_id: Annotated[str, typer.Argument(metavar="DOC_ID", help="The document's id, as query shows it.")],
    retrievers: Retrievers = None,
    align: Annotated[
        bool, typer.Option(help="Line up words of query and document in the contextual model, which loads it.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Say why each retriever scored a document so: word by word where that is exact, else by leaving words out."""
    from search.diagnostics.index_explanation import explain_document, explanation_json, explanation_lines
    from search.presentation.terminal import progress_on
    from search.retrieval.searcher import Searcher

    searcher = Searcher.open(index_path, _names(retrievers))
    with progress_on(_err()) as progress:
        explanations = explain_document(searcher, text, doc_id, align=align, progress=progress)
    if as_json:
        _print_json(explanation_json(explanations))
        return
    for name, explanation in explanations.items():
        for line in explanation_lines(name, explanation):
            _out().print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def layers(
    collection: Annotated[
        str, typer.Argument(metavar="COLLECTION", help="BEIR folder, folder of files, record file, or built-in name.")
    ] = "",
    model: Annotated[str, typer.Option(help="A folder or hub id; default: all-MiniLM-L6-v2.")] = "",
    limit: Annotated[int | None, typer.Option(help="Read only so many documents.", min=2)] = None,
    split: Splits = "test",
    lens_text: Annotated[
        str, typer.Option("--lens", help="Show for each token of this text the nearest vocabulary items, by layer.")
    ] = "",
    portability: Annotated[
        bool, typer.Option(help="Ask with one layer's vectors in another's space, and through a fitted rotation.")
    ] = False,
    other_model: Annotated[
        str, typer.Option(help="With --portability: ask with this model's vectors, too; a folder or hub id.")
    ] = "",
    contexts: Annotated[
        bool, typer.Option(help="Why there is no lookup table: count the words' contexts and weigh tables of them.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw what is shown here (.png or .svg).")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a row a layer: how anisotropic, how contextual, and how good at retrieval, raw and whitened."""
    from corpora.catalog import open_collection
    from search.diagnostics.collection_layers import collection_layers, layer_rows
    from search.presentation.figures import check_picture
    from search.presentation.terminal import progress_on, table_view

    if sum((bool(lens_text), portability, contexts)) > 1:
        message = "--lens, --portability and --contexts each show something else: ask for one"
        raise typer.BadParameter(message)
    if (plot is not None and lens_text) or (other_model and not portability):
        message = f"{'--plot' if lens_text else '--other-model'} would do nothing in this call"
        raise typer.BadParameter(message)
    check_picture(plot)
    if lens_text:
        _show_lens(lens_text, model, as_json)
        return
    if not collection:
        message = "name a collection, or a text: --lens TEXT"
        raise typer.BadParameter(message)
    if portability:
        _show_portability(collection, (model, other_model), limit, split, plot, as_json)
        return
    if contexts:
        _show_contexts(collection, model, limit, plot, as_json)
        return
    with progress_on(_err()) as progress:
        rows = collection_layers(open_collection(collection), model=model, limit=limit, split=split, progress=progress)
    if plot is not None:
        from search.presentation.geometry_plots import plot_layers

        plot_layers(rows, plot)
    if as_json:
        _print_json({"layers": [row.to_json() for row in rows]})
    else:
        _out().print(table_view(list(layer_rows(rows)), f"layers over {collection}", rows[-1].notes if rows else ()))


def _show_contexts(collection: str, model: str, limit: int | None, plot: Path | None, as_json: bool) -> None:
    from corpora.catalog import open_collection
    from search.diagnostics.collection_contexts import collection_contexts
    from search.json_values import json_value
    from search.presentation.sense_tables import context_notes, context_rows
    from search.presentation.terminal import progress_on, table_view

    with progress_on(_err()) as progress:
        found = collection_contexts(open_collection(collection), model=model, limit=limit, progress=progress)
    if plot is not None:
        from search.presentation.sense_plots import plot_contexts

        plot_contexts(found, plot)
    if as_json:
        _print_json(json_value(found))
    else:
        title = f"why there is no lookup table for words in context: {collection}"
        _out().print(table_view(list(context_rows(found)), title, context_notes(found)))


def _show_lens(text: str, model: str, as_json: bool) -> None:
    from search.diagnostics.lens import lens
    from search.diagnostics.word_senses import lens_rows, open_reader
    from search.json_values import json_value
    from search.presentation.terminal import table_view

    grid = lens(text, open_reader(model))
    if as_json:
        _print_json(json_value(grid))
    else:
        _out().print(table_view(list(lens_rows(grid)), f"“{text}”", [grid.explanation]))


def _show_portability(
    collection: str, models: tuple[str, str], limit: int | None, split: str, plot: Path | None, as_json: bool
) -> None:
    from corpora.catalog import open_collection
    from search.diagnostics.collection_portability import collection_portability, portability_notes, portability_rows
    from search.presentation.terminal import progress_on, table_view

    model, other = models
    with progress_on(_err()) as progress:
        found = collection_portability(
            open_collection(collection), model=model, other_model=other, limit=limit, split=split, progress=progress
        )
    if plot is not None:
        from search.presentation.sense_plots import plot_portability

        plot_portability(found, plot)
    if as_json:
        _print_json(found.to_json())
    else:
        title = f"recall@10 in vectors of another space: {collection}"
        _out().print(table_view(list(portability_rows(found)), title, portability_notes(found)))


@app.command()
def sense(
    word: Annotated[str, typer.Argument(help="The word to follow; with --index it may be left out.")] = "",
    contexts: Annotated[list[str] | None, typer.Argument(help="Two or more texts that hold it.")] = None,
    model: Annotated[str, typer.Option(help="A folder or hub id; default: all-MiniLM-L6-v2, or the index's.")] = "",
    occurrence: Annotated[int, typer.Option(help="Which occurrence where a context holds several.", min=1)] = 1,
    index_path: Annotated[
        Path | None,
        typer.Option(
            "--index", help="Group the word's occurrences in this index, and rank its words by context dependence."
        ),
    ] = None,
    sample: Annotated[
        int, typer.Option(help="With --index: most texts read to rank its words, a forward pass each.", min=2)
    ] = 300,
    plot: Annotated[Path | None, typer.Option(help="Draw what is shown here (.png or .svg).")] = None,
    as_json: AsJson = False,
) -> None:
    """Follow a word through the layers in several contexts: where its senses part, and which neighbours moved it."""
    from search.presentation.figures import check_picture

    check_picture(plot)
    if index_path is not None:
        if contexts:
            message = "with --index the contexts come from the index; give a word alone, or none"
            raise typer.BadParameter(message)
        _show_index_senses(index_path, word, model, sample, plot, as_json)
        return
    if not word:
        message = "give a word and two or more contexts, or --index INDEX"
        raise typer.BadParameter(message)
    from search.diagnostics.word_senses import follow, sense_lines, sense_rows
    from search.json_values import json_value
    from search.presentation.sense_tables import neighbour_notes, neighbour_rows
    from search.presentation.terminal import progress_on, table_view

    with progress_on(_err()) as progress:
        report = follow(word, contexts or [], model=model, occurrence=occurrence, progress=progress)
    if plot is not None:
        from search.presentation.sense_plots import plot_senses

        plot_senses(report, plot)
    if as_json:
        _print_json(json_value(report))
        return
    title = f"“{report.word}” in {len(report.contexts)} contexts, layer by layer"
    _out().print(table_view(list(sense_rows(report)), title, sense_lines(report)))
    moved = list(neighbour_rows(report))
    if moved:
        _out().print(table_view(moved, "which neighbours moved it", neighbour_notes(report), left=("neighbour",)))


def _show_index_senses(index_path: Path, word: str, model: str, sample: int, plot: Path | None, as_json: bool) -> None:
    from indexer.opening import open_index
    from search.diagnostics.index_senses import index_senses
    from search.diagnostics.word_senses import corpus_sense_rows
    from search.json_values import json_value
    from search.presentation.sense_tables import dependence_notes, dependence_rows, grouping_notes
    from search.presentation.terminal import progress_on, table_view

    with progress_on(_err()) as progress:
        found = index_senses(open_index(index_path), word, model=model, sample=sample, progress=progress)
    if plot is not None and found.dependence is not None:
        from search.presentation.sense_plots import plot_dependence

        plot_dependence(found.dependence, plot)
    if as_json:
        _print_json(json_value(found))
        return
    if found.senses is not None:
        title = f"“{word}” in {index_path}"
        rows = list(corpus_sense_rows(found.senses))
        _out().print(table_view(rows, title, grouping_notes(found), left=("for instance",)))
    if found.dependence is not None:
        title = f"what depends on context in {index_path}"
        words = list(dependence_rows(found.dependence))
        _out().print(table_view(words, title, dependence_notes(found), left=tuple(words[0])))


@app.command("evaluate-senses")
def evaluate_senses_command(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Pairs of a word in two sentences, as JSON lines; with --probe also a collection whose documents are "
            "labelled with word and sense; default then: the built-in senses.",
        ),
    ] = "",
    train: Annotated[
        Path | None, typer.Option(help="Pairs that the thresholds come from; with --probe, what it learns from.")
    ] = None,
    probe: Annotated[
        bool, typer.Option(help="What a linear classifier reads out of the word's vector, by layer, beside cosines.")
    ] = False,
    model: Annotated[str, typer.Option(help="A folder or hub id; default: all-MiniLM-L6-v2.")] = "",
    sample: Annotated[int | None, typer.Option(help="Most training pairs used.", min=1)] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw accuracy by layer here (.png or .svg).")] = None,
    as_json: AsJson = False,
) -> None:
    """Word in context: how often each layer, and a static table, tells whether a word means the same twice."""
    from search.presentation.figures import check_picture

    check_picture(plot)
    if sample is not None and train is None:
        message = "--sample limits the pairs of --train; it would do nothing in this call"
        raise typer.BadParameter(message)
    if probe:
        _show_probe(file, train, model, sample, plot, as_json)
        return
    if not file or train is None:
        message = "give FILE and --train FILE, or --probe"
        raise typer.BadParameter(message)
    from search.diagnostics.word_in_context import evaluate_senses, read_pairs
    from search.diagnostics.word_senses import accuracy_rows, open_reader, static_words
    from search.presentation.terminal import progress_on, table_view

    pairs, training = read_pairs(file), read_pairs(train)
    with progress_on(_err()) as progress:
        found = evaluate_senses(
            pairs, training, open_reader(model), static=static_words(), sample=sample, progress=progress
        )
    if plot is not None:
        from search.presentation.sense_plots import plot_accuracy

        plot_accuracy(found, plot)
    if as_json:
        _print_json(found.as_json())
    else:
        notes = [f"one answer for all pairs would be right in {found.majority:.3f}", *found.notes]
        _out().print(table_view(list(accuracy_rows(found)), f"{found.pairs:,} pairs", notes))


def _show_probe(
    file: str, train: Path | None, model: str, sample: int | None, plot: Path | None, as_json: bool
) -> None:
    from search.diagnostics.labelled_words import probe_file
    from search.presentation.sense_tables import probe_notes, probe_rows
    from search.presentation.terminal import progress_on, table_view

    with progress_on(_err()) as progress:
        found = probe_file(file or "senses", train, model=model, sample=sample, progress=progress)
    if plot is not None:
        from search.presentation.sense_plots import plot_probe

        plot_probe(found.probe, plot)
    if as_json:
        _print_json(found.to_json())
    else:
        title = f"what can be read out of a word's vector: {file or 'senses'}"
        notes = probe_notes(found.probe, pairs=found.pairs)
        _out().print(table_view(list(probe_rows(found.probe)), title, notes))


@app.command("evaluate-similarity")
def evaluate_similarity_command(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Pairs of texts with a score each, or wordsim353, simlex999.")
    ],
    statistics: Annotated[
        str, typer.Option(help="Pairs whose texts alone the whitening is fitted on; default: nothing is whitened.")
    ] = "",
    model: Annotated[str, typer.Option(help="A folder (ELMo's too) or hub id; default: all-MiniLM-L6-v2.")] = "",
    static: Annotated[str, typer.Option(help="Word vectors: glove, word2vec (with --corpus), or a file.")] = "glove",
    corpus: Annotated[str, typer.Option(help="Collection that --static word2vec is trained on.")] = "",
    whitening: Annotated[str, typer.Option(help="auto, a rank or a shrinkage.")] = "auto",
    only_static: Annotated[bool, typer.Option(help="Leave the model out.")] = False,
    trust_pickle: Annotated[bool, typer.Option(help="Load word vectors that are pickles (they can run code).")] = False,
    as_json: AsJson = False,
) -> None:
    """Text similarity: how well cosines rank pairs as people do, for a static table, each layer, and the output."""
    from corpora.catalog import open_collection
    from indexer.whitening_spec import WhiteningSpec
    from search.diagnostics.similarity_candidates import open_candidates
    from search.diagnostics.similarity_files import distinct_texts, read_text_pairs
    from search.diagnostics.text_similarity import evaluate_similarity, similarity_rows
    from search.presentation.terminal import progress_on, table_view

    asked = WhiteningSpec.parse(whitening)
    pairs = read_text_pairs(file)
    known = distinct_texts(read_text_pairs(statistics)) if statistics else []
    with progress_on(_err()) as progress:
        candidates = open_candidates(
            [*distinct_texts(pairs), *known],
            progress=progress,
            static=static,
            corpus=open_collection(corpus) if corpus else None,
            model=model,
            only_static=only_static,
            trust_pickle=trust_pickle,
        )
        found = evaluate_similarity(pairs, candidates, statistics=known, whitening=asked, progress=progress)
    if as_json:
        _print_json(found.as_json())
    else:
        title = f"{Path(file).name}: Spearman's correlation over {found.pairs:,} pairs"
        _out().print(table_view(list(similarity_rows(found)), title, found.notes))


@app.command()
def ladder(
    collection: CollectionName,
    index_folder: Annotated[
        Path | None, typer.Option("--index", help="Keep the index here; default: a temporary folder.")
    ] = None,
    split: Splits = "test",
    measures: Annotated[str, typer.Option(help="ir-measures names, comma-separated.")] = "nDCG@10,RR,AP,R@100",
    fasttext: Annotated[str, typer.Option(help="A fastText .bin or .vec file.")] = "",
    bert: Annotated[str, typer.Option(help="A local folder or hub id of BERT or kin.")] = "",
    elmo: Annotated[str, typer.Option(help="A folder with ELMo's options.json and HDF5 weights.")] = "",
    token_table: Annotated[str, typer.Option(help="A folder of a static sentence model (model2vec's kind).")] = "",
    precision: Annotated[str, typer.Option(help="int8, bf16 or fp32, for the sentence transformer.")] = "int8",
    plot: Annotated[Path | None, typer.Option(help="Draw quality against cost here (.png or .svg).")] = None,
    trust_pickle: Annotated[bool, typer.Option(help="Load files that are pickles (they can run code).")] = False,
    as_json: AsJson = False,
) -> None:
    """Build and evaluate every family of embeddings, from word2vec to the sentence transformer, in one table."""
    import tempfile

    from corpora.catalog import open_collection
    from search.ladder import Extras, climb
    from search.presentation.terminal import evaluation_view, progress_on

    extras = Extras(fasttext, bert, elmo, token_table)
    with tempfile.TemporaryDirectory(prefix="twindex-") as temporary, progress_on(_err()) as progress:
        evaluation = climb(
            open_collection(collection),
            index_folder or Path(temporary) / "index",
            progress=progress,
            extras=extras,
            defaults={"precision": precision},
            split=split,
            measures=measures,
            trust_pickle=trust_pickle,
        )
    if plot is not None:
        from search.presentation.report import save_frontier

        save_frontier(evaluation, plot)
    if as_json:
        _print_json(evaluation.to_json())
    else:
        _out().print(evaluation_view(evaluation))


@app.command()
def check(index_path: IndexPath, as_json: AsJson = False) -> None:
    """Read all of an index and say whether it is whole; exit 1 and say what to do where it is not."""
    from indexer.checking import check_index

    report = check_index(index_path)
    if as_json:
        _print_json(report.to_json())
    else:
        console = _out()
        for fault in report.faults:
            console.print(f"{fault.where}: {fault.found}; {fault.remedy}", markup=False, soft_wrap=True)
        counts = ", ".join(f"{name} {count:,}" for name, count in report.facts.items())
        state = "is whole" if report.is_whole else f"has {len(report.faults)} faults"
        console.print(f"{index_path} {report.generation} {state} ({counts})", markup=False, soft_wrap=True)
        for note in report.notes:
            _err().print(note, style="yellow", markup=False, soft_wrap=True)
    if not report.is_whole:
        raise typer.Exit(1)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to put the index.")] = Path("demo-index"),
) -> None:
    """Index the built-in `senses`, ask ambiguous questions side by side, evaluate: the main job in one go."""
    from search.presentation.demonstration import QUESTIONS

    out = _out()
    out.rule("twindex index senses", align="left")
    index("senses", folder)
    for question in QUESTIONS:
        out.rule(f"twindex query {folder} “{question}” -k 3", align="left")
        query(folder, question, k=3)
    out.rule(f"twindex evaluate {folder}", align="left")
    evaluate([folder])


_INTERRUPTED = 130


def main() -> None:
    """Run the command line; errors are one line, and exit codes are 0, 1, 2 and 130."""
    arguments = sys.argv[1:]
    debug = "--debug" in arguments
    if debug:
        arguments.remove("--debug")
    sys.exit(_run(arguments, debug))


def _run(arguments: list[str], debug: bool) -> int:
    _survive_encodings()
    try:
        result = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except (typer.Abort, KeyboardInterrupt):
        result = _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has closed it (head, less): nothing is wrong.
        sys.stdout = None
        return 0
    except Exception as error:
        if hasattr(error, "show"):  # what typer itself raises about a wrong call, whichever click it brings
            error.show()
            return int(getattr(error, "exit_code", 2))
        if debug:
            raise
        return _report(error)
    if result == _INTERRUPTED:  # which typer returns where it caught the interruption itself
        sys.stderr.write("stopped\n")
    return result if isinstance(result, int) else 0


def _report(error: Exception) -> int:
    from corpora.errors import CorpusError
    from indexer.errors import IndexerError
    from search.errors import SearchError

    line = " ".join(str(error).split())
    if isinstance(error, CorpusError | IndexerError | SearchError):
        sys.stderr.write(f"twindex: {line}\n")
    elif isinstance(error, OSError):
        sys.stderr.write(f"twindex: {line}; check the path, its permissions and the space left\n")
    else:
        sys.stderr.write(f"twindex: unexpected {type(error).__name__}: {line}; run again with --debug to see where\n")
    return 1


def _survive_encodings() -> None:
    """Let terminals of any encoding show any text: what they cannot show becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
