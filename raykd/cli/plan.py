"""`raykd plan`: show the work of a sweep, its stored parts, and the costs of its student shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import ceil
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from raykd.cli.cluster import cluster_session
from raykd.cli.console import duration, stdout, warn
from raykd.cli.options import Address, Overrides, Small, SweepPath, Variants, file_arguments, load_document
from raykd.cluster.data_parallel import Network
from raykd.cluster.placement import group_of, preflight
from raykd.cluster.topology import Topology
from raykd.corpora.pretrained import HFVocabulary
from raykd.figures.results import Cost, Scores
from raykd.figures.table import COSTS, Runtime
from raykd.figures.trial import shape_name
from raykd.pluralise import pluralise
from raykd.precompute.features import feature_plan
from raykd.precompute.plan import Estimate, estimate
from raykd.recipes.run import Run
from raykd.recipes.stored_vocabulary import open_vocabulary, unknown_share
from raykd.report.readable_numbers import FORMS, percent, share
from raykd.sweep.forecast import Forecast, forecast_sweep, labelling_ms
from raykd.sweep.gpu_gain import gpu_gains, trains_on_gpus
from raykd.sweep.limits import (
    allowed_shapes,
    refuse_short_budget,
    refuse_unmeetable_constraints,
    trials_within_budget,
)
from raykd.sweep.phases.costs import cost_of_runs, known_costs, measure_costs
from raykd.sweep.phases.questions import questions
from raykd.sweep.records import SweepRecords
from raykd.sweep.sweep import Sweep
from raykd.sweep.worker_efficiency import EFFICIENT, worker_efficiencies
from raykd.tasks import find_task
from raykd.training.checkpoint_examples import checkpoint_examples
from raykd.training.data import cached_corpus
from raykd.training.execute import find_result
from raykd.training.model_folder import is_trained, model_config

NAMED = 3
"""Most shapes that a note names."""


def plan(
    file: SweepPath,
    set_: Overrides = None,
    variant: Variants = None,
    small: Small = False,
    address: Address = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Also measure and show the costs with 8-bit weights and in PyTorch."),
    ] = False,
) -> None:
    """Show the work of a sweep, and size and latency of each student shape. Trains nothing."""
    sweep = Sweep(load_document(file, variant, small, set_))
    runtimes: list[Runtime] = [
        *(("int8", "torch") if all_ else ()),
        *(("gpu",) if trains_on_gpus(sweep) else ()),
    ]
    with cluster_session(sweep, address, idle=lambda: known_costs(sweep, runtimes), ask=False) as session:
        cluster, listener = session
        at_once = preflight(sweep.file.resources, cluster).students
        if sweep.timed_on is None:
            measure_costs(sweep, cluster, listener, runtimes)
    transfer = sweep.transfer()
    estimated = estimate(transfer) if transfer is not None else None
    expected = forecast_sweep(sweep, at_once)
    teachers = [_teachers(sweep)] if sweep.teachers else []
    costs = [(_shape_name(runs), cost_of_runs(sweep, runs)) for runs in sweep.students()]
    stdout.print(_corpus(sweep), *teachers, _shapes(sweep, costs, all_costs=all_))
    for note in _cost_notes(costs):
        warn(note)
    for line in (
        *sweep.preparation.corpus.report.pos_messages(),
        *_vocabularies(sweep),
        *_answers(sweep),
        *_published(sweep),
        *_features(sweep, expected),
        *_signals(estimated),
        *_live(sweep),
    ):
        stdout.print(line)
    for line in _search(sweep):  # printed line by line: it may end in an error
        stdout.print(line)
    stdout.print(f"time: {_duration(expected)}")
    for line in (*_workers(sweep), *_gpus(sweep, cluster), *_budget(sweep, expected, at_once)):
        stdout.print(line)
    next_ = _next(sweep, file, set_, variant, small)
    stdout.print(f"{_summary(sweep, estimated, at_once)}. {next_}")


def _search(sweep: Sweep) -> Iterator[str]:
    """Lines on the start of the search, and on the student shapes within its constraints on costs."""
    starts = sweep.starts
    if starts.params or starts.misfits:
        yield f"start: {pluralise(len(starts.params), 'setting')} of search.start_from first"
    yield from (f"start: left out, {misfit}" for misfit in starts.misfits)
    if sweep.file.search.constraints:
        allowed, shapes = allowed_shapes(sweep)
        yield f"constraints: {len(allowed)} of {pluralise(len(shapes), 'student shape')} meet those on costs"
        refuse_unmeetable_constraints(sweep)


def _duration(expected: Forecast) -> str:
    parts = (f"{phase} {duration(seconds)}" for phase, seconds in expected.phases.items() if seconds)
    bound = f"; at most: {', '.join(expected.at_most)}" if expected.at_most else ""
    trained = expected.trained_share
    stopped = (
        ""
        if trained is None
        else f"; trials are counted with {share(trained)} of their epochs, as those so far had"
    )
    return f"about {duration(expected.seconds)} on this machine ({', '.join(parts)}){bound}{stopped}"


def _workers(sweep: Sweep) -> Iterator[str]:
    """A line on the student trained least efficiently by several workers, and on the batch size for good efficiency."""
    network = Network()
    students = [student for student in worker_efficiencies(sweep, network) if student.efficiency < EFFICIENT]
    if students:
        worst = students[0]
        batch_tokens = 100 * ceil(max(student.efficient_tokens for student in students) / 100)
        yield (
            f"workers: {worst.workers} workers would train {shape_name(worst.run.model)} in batches of "
            f"{worst.tokens:,} tokens at {share(worst.efficiency)} efficiency at most (assumed: "
            f"{network.gbit_per_s:g} Gbit/s between them); {share(EFFICIENT)} need training.batch_tokens: "
            f"{batch_tokens} or more; with workers: 1, more runs fit at once"
        )


def _gpus(sweep: Sweep, cluster: Topology) -> Iterator[str]:
    """Yield a line for every model with slower training on GPUs than on the cluster's processors."""
    for gain in gpu_gains(sweep, cluster):
        if not gain.pays:
            key = f"resources.{gain.role}.gpus_per_worker"
            yield (
                f"GPUs: they do not pay for {shape_name(gain.run.model)}: at most {gain.on_gpus:,.0f} pieces/s in "
                f"training over all runs at once, and {gain.on_cores:,.0f} without them; set {key}: 0"
            )


def _budget(sweep: Sweep, expected: Forecast, at_once: int) -> Iterator[str]:
    """Lines on GPU-hours, and on the part of the search that fits into the budget."""
    gpus = group_of(sweep.file.resources.for_role("students")).total.get("GPU", 0.0)
    if gpus:
        hours = gpus * at_once * expected.seconds / 3600
        yield f"GPUs: at most {hours:.3g} GPU-hours, as if they were no faster than a core of this machine"
    fitting = trials_within_budget(sweep, expected, at_once)
    if fitting is not None and (remaining := sweep.trials - len(sweep.earlier())):
        yield f"budget: about {fitting} of {pluralise(remaining, 'trial')} fit, of {duration(expected.trial_s)} each"
    refuse_short_budget(sweep, expected)


def _vocabularies(sweep: Sweep) -> Iterator[str]:
    """Lines on vocabularies: too few pieces, memory saved by pruning, and unknown pieces in the test."""
    runs: dict[str, list[Run]] = {}
    for run in sweep.shapes():
        runs.setdefault(run.vocabulary_id, []).append(run)
    for runs_of_vocabulary in runs.values():
        pieces = open_vocabulary(sweep.storage, runs_of_vocabulary[0].vocabulary_id).pieces
        # A checkpoint has no requested size.
        requested = getattr(model_config(runs_of_vocabulary[0]).tokenizer, "size", 0)
        if pieces.size < requested:
            yield f"vocabulary: {pieces.size:,} pieces instead of {requested:,}, as the text has no more"
        if not isinstance(pieces, HFVocabulary) or not pieces.used:
            continue
        sizes = sorted({size for run in runs_of_vocabulary if (size := model_config(run).embedding_dim)})
        if not sizes:  # a checkpoint that keeps all its pieces
            continue
        saved = [f"{(pieces.full_size - pieces.used) * size * 4 / 1e6:.1f} MB at E {size}" for size in sizes]
        test = cached_corpus(sweep.storage.uri, runs_of_vocabulary[0].corpus_id).parts["test"]
        pruning = (
            f"{pieces.size:,} of {pieces.full_size:,} pieces, which saves"
            if pieces.checkpoint_ids is not None
            else f"all {pieces.full_size:,} pieces; pruned to the {pieces.used:,} of its text it would save"
        )
        unknown = f"{100 * unknown_share(pieces, test):.2f} % of the test's pieces are unknown"
        yield f"vocabulary: {pruning} {' … '.join(dict.fromkeys((saved[0], saved[-1])))}; {unknown}"


def _answers(sweep: Sweep) -> Iterator[str]:
    """Yield a line on the missing answers of every annotator that is asked."""
    for question in questions(sweep):
        annotator, texts = question.annotator, len(question.texts)
        parts = ", ".join(f"{part} {number:,}" for part, number in question.counts.items() if number)
        line = f"answers: {pluralise(texts, 'text')} to ask {annotator.title} about"
        if texts:
            line += f" (sentences: {parts})"
            if annotator.texts_per_minute is not None:
                line += f", in at least {duration(60 * texts / annotator.texts_per_minute)}"
            if annotator.cost_per_1000_texts is not None:
                price = annotator.cost_per_1000_texts
                line += f", for {texts * price / 1000:,.2f} at {price:g} for 1,000"
        yield line


def _published(sweep: Sweep) -> Iterator[str]:
    """Yield lines on what each checkpoint as published makes of the corpus, until its score is known."""
    for name, run in sweep.teachers:
        reading = model_config(run).published_reading
        corpus = cached_corpus(sweep.storage.uri, run.corpus_id)  # of the languages that it labels
        if not reading or corpus.unit != "word" or find_result(sweep.storage, run) is not None:
            continue
        examples = checkpoint_examples(sweep.storage, run, corpus)
        yield f"{name}: {reading}; for example:"
        yield from (f"  {sentence}" for sentence in examples.sentences)
        if examples.left_out is not None:
            sentences = pluralise(examples.read, "sentence")
            yield (
                f"  {share(examples.left_out)} of its probability is of spans that cut a word, and is left out "
                f"(mean of {sentences} of dev)"
            )


def _features(sweep: Sweep, expected: Forecast) -> Iterator[str]:
    """Yield a line on the missing features of every frozen encoder."""
    for reading in expected.readings:
        planned = feature_plan(sweep.storage, [reading])
        missing = estimate(planned).missing_bytes / 2**20 if planned else 0.0
        yield (
            f"features: {reading.new:,} of {reading.sentences:,} sentences through {reading.config.title} "
            f"({missing:.1f} MiB to compute)"
        )


def _signals(estimated: Estimate | None) -> Iterator[str]:
    """Yield a line on the size of every signal, and on the missing part."""
    for name, signal in estimated.signals.items() if estimated else ():
        whole, missing = (f"{size / 2**20:.1f} MiB" for size in (signal.bytes, signal.missing_bytes))
        amount = "once per teacher"
        if signal.sentences:
            kib = signal.bytes / signal.sentences / 1024
            amount = f"{pluralise(signal.sentences, 'sentence')} × {kib:.2f} KiB = {whole}"
        yield f"signal: {name}: {amount} ({missing} to compute)"


def _live(sweep: Sweep) -> Iterator[str]:
    """Lines on teacher signals computed in the training step, and on their time."""
    for preparation in sweep.preparations.values():
        names = ", ".join(dict.fromkeys(need.name.replace(".", " of layer ") for need in preparation.live))
        for teacher in preparation.preparation.teachers if names else ():
            batch = labelling_ms(sweep, teacher.run)
            # The time is that of generating trees; in the training step their steps are given.
            about = "at most" if find_task(teacher.run.task).form.generates else "about"
            yield (
                f"in the training step: {names}: {teacher.name} reads each batch, {about} {batch:.0f} ms for 32 "
                "sentences; nothing of it is stored"
            )


def _next(
    sweep: Sweep, file: Path, overrides: list[str] | None, variants: list[str] | None, small: bool
) -> str:
    """Return a sentence with the command for starting or continuing the sweep."""
    if sweep.resumable:
        return f"Next: raykd sweep {file_arguments(file, variants, small, overrides)} --resume"
    name, reason = sweep.file.name, ""
    if sweep.records.exists():
        names = (f"{name}-{number}" for number in count(2))
        new = next(candidate for candidate in names if not SweepRecords(sweep.storage, candidate).exists())
        reason = f"The store has a different sweep {name!r} (corpus, teachers or space); give this one another name. "
        overrides = [*(overrides or ()), f"name={new}"]
    return f"{reason}Next: raykd sweep {file_arguments(file, variants, small, overrides)}"


def _summary(sweep: Sweep, estimated: Estimate | None, at_once: int) -> str:
    sets = "no transfer set"
    if estimated is not None:
        cached, missing = estimated.cached_bytes / 2**20, estimated.missing_bytes / 2**20
        sets = (
            f"{pluralise(estimated.sets, 'transfer set')} ({estimated.cached_sets} cached; "
            f"{cached:.1f} MiB in the store, "
            f"{missing:.1f} MiB to compute)"
        )
    return (
        f"plan: {pluralise(sweep.trials, 'trial')} ({len(sweep.earlier())} done), {at_once} at once, {sets}"
    )


def _corpus(sweep: Sweep) -> Table:
    several = len({preparation.preparation.corpus_id for preparation in sweep.preparations.values()})
    title = f"corpus {sweep.preparation.corpus_id}" + (f", the largest of {several}" if several > 1 else "")
    table = Table(title=title, title_justify="left")
    report = sweep.preparation.corpus.report
    counts = report.sentences
    table.add_column("language")
    for part in counts:
        table.add_column(part, justify="right")
    for language in sweep.preparation.corpus.languages:
        role = report.role(language)
        name = language if role == "labelled" else f"{language} ({role})"
        table.add_row(name, *(str(counts[part].get(language, 0)) for part in counts))
    return table


def _teachers(sweep: Sweep) -> Table:
    metric = sweep.file.task_entry.score_label
    table = Table("teacher", "", f"dev {metric}", f"test {metric}", title="teachers", title_justify="left")
    if sweep.preparation.corpus.targets:
        table.add_column("target")
    # The members of an ensemble come first, as they are trained.
    for name, run in dict([*sweep.members, *sweep.teachers]).items():
        result = find_result(sweep.storage, run)
        scores_of_run = result.scores if result else Scores()
        means = [scores_of_run.mean("dev"), scores_of_run.mean("test"), scores_of_run.mean("test", "target")]
        scores = ["" if mean is None else percent(mean) for mean in means[: len(table.columns) - 2]]
        state = "cached" if result else "to train" if is_trained(run) and not run.members else "to evaluate"
        table.add_row(Text.assemble(name, "  ", (run.id, "dim")), state, *scores)
    return table


def _shapes(sweep: Sweep, costs: Sequence[tuple[str, Cost]], *, all_costs: bool) -> Table:
    figures = [
        figure
        for figure in COSTS
        if (figure.planned or all_costs or figure.name in sweep.file.objectives)
        and any(figure.name in cost.figures for _, cost in costs)
    ]
    table = Table(title="student shapes", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("student", no_wrap=True)
    for figure in figures:
        # Headings may wrap, numbers may not.
        heading = figure.short or figure.heading or figure.words or figure.name
        table.add_column(heading, justify="right", min_width=6)
    for name, cost in costs:
        cells = (FORMS[figure.form](cost.figures.get(figure.name)) for figure in figures)
        table.add_row(name, *cells)
    processors = ", ".join(dict.fromkeys(str(cost.hardware["processor"]) for _, cost in costs))
    timed = "the export in ONNX Runtime" if any(not cost.no_export for _, cost in costs) else "PyTorch"
    table.caption, table.caption_justify = f"{timed}, one thread, timed on {processors}", "left"
    return table


def _shape_name(runs: tuple[Run, ...]) -> str:
    name = shape_name(runs[0].model)
    return f"{name} × {len(runs)} languages" if len(runs) > 1 else name


def _cost_notes(costs: Sequence[tuple[str, Cost]]) -> Iterator[str]:
    """Notes on missing or uncertain costs, each with its shapes."""
    shapes_by_remark: dict[str, list[str]] = {}
    for name, cost in costs:
        for remark in cost.remarks:
            shapes_by_remark.setdefault(remark, []).append(name)
    for remark, names in shapes_by_remark.items():
        names_in_words = (
            "every shape"
            if len(names) == len(costs)
            else ", ".join(names[:NAMED]) + ", …" * (len(names) > NAMED)
        )
        yield f"{names_in_words}: {remark}"
