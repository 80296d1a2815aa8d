"""The table of all figures of a trial: scores and costs, each one number.

The store, the search, the front, `--where` and `--best`, the terminal, the HTML page, CSV, Parquet and MLflow read this
table. To add a size, write its function in `sizes.py` and add an entry with it to `COSTS`. A timed figure has an entry
too, and `precompute/model_cost.py` times it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from raykd.figures import sizes
from raykd.figures.cost_grid import round_to_grid
from raykd.figures.pareto import Direction
from raykd.figures.results import Group, Part
from raykd.figures.sizes import Shape
from raykd.figures.trial import Trial, TrialOrTeacher
from raykd.spec.messages import unknown_message

Directions = Mapping[str, Direction]
"""The objectives of a search: name of a figure → "max" or "min"."""
Form = Literal["percent", "count", "bytes", "milliseconds", "seconds", "times", "decimal"]
Runtime = Literal["onnx", "int8", "torch", "gpu", "gpu_bf16"]
"""Ways to run a model: from the export by ONNX Runtime, in float32 (`onnx`) or with weights of 8 bits (`int8`); by
PyTorch (`torch`); or by PyTorch on a GPU, as one CUDA graph for each shape of a batch (`gpu`, in bf16 `gpu_bf16`)."""
GPU_RUNTIMES: tuple[Runtime, ...] = ("gpu", "gpu_bf16")
ENDINGS: Mapping[Runtime, str] = MappingProxyType(
    {"onnx": "", "int8": "_int8", "torch": "_torch", "gpu": "_gpu", "gpu_bf16": "_gpu_bf16"}
)
"""Runtime → ending of the names of its figures."""
OfShape = Callable[[Shape], float | None]

AGREEMENT = "agreement"
"""Metric beside any score: the task's metric against the labels of an annotator that taught the student."""
HIDDEN = "selection is on dev: test scores are only reported, so that they stay honest estimates"


@dataclass(frozen=True)
class Figure:
    """One figure of a trial, or of the teacher that it is compared with.

    Attributes:
        name: Name in sweep files, `--where`, MLflow and CSV; `{score}` stands for the name of the task's score.
        direction: The better direction.
        form: The format in which `report/readable_numbers.py` writes it.
        words: Words after the number in a sentence.
        heading: Heading of its column; `{label}` stands for the readable name of the task's score.
        short: Heading where space is short, if another one.
        column: Priority of its column in tables; None for no column. A narrow terminal leaves out higher numbers first;
            0 always stays.
        planned: Whether `raykd plan` shows it for every shape, if it is known before training.
        over_models: How the figures of several models that share the work by language combine: sizes add up, while a
            sentence is labelled by one of the models.
        against: For a ratio: the figure that is divided, the teachers' by the student's.
        aliases: Other names that `--where` and `--best` accept.
        score: For a score: part, group of languages, and metric; an empty metric is the task's score.
        beside: The name of the task's score that this metric goes with; empty for any task.
        runtime: The runtime that it is measured in; None for any.
        of_shape: For a size: the function that computes it from a shape.
    """

    name: str
    direction: Direction
    form: Form
    words: str = ""
    heading: str = ""
    short: str = ""
    column: int | None = None
    planned: bool = True
    over_models: Literal["sum", "mean"] = "sum"
    against: str = ""
    aliases: tuple[str, ...] = ()
    score: tuple[Part, Group, str] | None = None
    beside: str = ""
    runtime: Runtime | None = None
    of_shape: OfShape | None = None

    @property
    def part(self) -> Part | None:
        """The part of a score; None for a cost."""
        return self.score and self.score[0]

    @property
    def metric(self) -> str:
        """The further metric of a score; empty for the task's score and for costs."""
        return self.score[2] if self.score else ""

    @property
    def known_before_training(self) -> bool:
        """True for all costs but the duration of training."""
        return self.score is None and self.name != "wall_s"

    @property
    def selectable(self) -> bool:
        """True if students may be searched and chosen by the figure: costs and dev scores."""
        return self.part in (None, "dev")

    def belongs_to(self, score_name: str) -> bool:
        """Return True if the figure is one of tasks with the score `score_name`."""
        return self.beside in ("", score_name) and self.metric != score_name

    def read(self, scored: TrialOrTeacher) -> float | None:
        """Return the figure's value for a trial or teacher; None if unknown."""
        if self.score is not None:
            return scored.scores.mean(*self.score)
        return scored.cost.get(self.name) if self.known_before_training else getattr(scored, self.name, None)

    def compared_value(self, trial: Trial) -> float | None:
        """Return the value for comparing students; None if unknown.

        Timed figures are rounded to the grid of the sweep, whose steps are as wide as the noise of a measurement. Other
        figures are compared as they are.
        """
        value, name = self.read(trial), self.against or self.name
        if value is None or name not in trial.grid or name not in trial.cost:
            return value
        exact = trial.cost[name]
        rounded = round_to_grid(exact, *trial.grid[name])
        return value * exact / rounded if self.against else rounded

    def full_name(self, score_name: str) -> str:
        """Return the figure's name in a sweep with the score `score_name`."""
        return self.name.format(score=score_name)

    def accepted_names(self, score_name: str) -> tuple[str, ...]:
        """Return the figure's name and aliases in a sweep with the score `score_name`."""
        return tuple(name.format(score=score_name) for name in (self.name, *self.aliases))


def _scores_beside(
    beside: str,
    metric: str,
    short: str,
    *,
    direction: Direction = "max",
    form: Form = "percent",
    aliases: tuple[str, ...] = (),
) -> tuple[Figure, ...]:
    """Return the figures of a further metric: on dev (with `aliases`), on test, and on test of target languages."""
    places: tuple[tuple[Part, Group], ...] = (("dev", "source"), ("test", "source"), ("test", "target"))
    return tuple(
        Figure(
            f"{part}_{metric}" + "_target" * (group == "target"), direction, form,
            heading=f"{part if group == 'source' else group} {short}", short=short, beside=beside,
            score=(part, group, metric), aliases=aliases if part == "dev" else (),
        )
        for part, group in places
    )  # fmt: skip


DEV = Figure(
    "dev_{score}", "max", "percent",
    heading="dev {label}", aliases=("{score}", "score"), score=("dev", "source", ""),
)  # fmt: skip
TEST = Figure("test_{score}", "max", "percent", heading="test {label}", score=("test", "source", ""))
TARGET = Figure("test_{score}_target", "max", "percent", heading="target", score=("test", "target", ""))
# Only with `corpus.zero_shot_dev`.
TARGET_DEV = Figure("dev_{score}_target", "max", "percent", heading="dev target", score=("dev", "target", ""))
SCORES = (
    DEV,
    TEST,
    TARGET,
    # Parsing: unlabelled attachment, and the share of words whose best head was changed so that heads form a tree.
    *_scores_beside("las", "uas", "UAS", aliases=("uas",)),
    Figure(
        "test_repairs", "min", "percent",
        heading="repaired heads", short="repaired", beside="las", score=("test", "source", "repairs"),
    ),
    # Intents and slots: each alone (for trees, the root's intent), and the share of generated outputs that are trees.
    *_scores_beside("exact_match", "intent_accuracy", "intent", aliases=("intent_accuracy",)),
    *_scores_beside("exact_match", "slot_f1", "slot F1", aliases=("slot_f1",)),
    *_scores_beside("exact_match", "well_formed", "trees", aliases=("well_formed",)),
    # Labels of a task with gold labels: agreement with those of an annotator that taught the student.
    *_scores_beside("", AGREEMENT, AGREEMENT, aliases=(AGREEMENT,)),
    # Masked language models.
    *_scores_beside("mlm_score", "perplexity", "perplexity", direction="min", form="decimal"),
)  # fmt: skip

# Pieces per second on one thread, in batches of 32 sentences: forward and backward pass and a step of the optimiser.
TRAINING_SPEED, TRAINING_SPEED_GPU = (
    Figure(f"training_pieces_per_s{ending}", "max", "count", words, planned=False, over_models="mean")
    for ending, words in (("", "pieces/s in training"), ("_gpu", "pieces/s in training on a GPU"))
)
PARAMETERS = Figure(
    "parameters", "min", "count", "parameters",
    heading="parameters", short="params", column=0, of_shape=sizes.parameters,
)  # fmt: skip
MAIN = {"latency_ms": 0, "speedup": 3, "compression": 3}
"""Figures of the float32 export with a column in tables → priority of the column."""


def _run_by(runtime: Runtime, words: str = "", of_shape: OfShape | None = None) -> dict[str, Figure]:
    """Return the costs of a model in one runtime: latencies, bytes, and ratios to the teachers in the same runtime."""
    ending, ships = ENDINGS[runtime], runtime == "onnx"
    rows: list[tuple[str, Direction, Form, str, str]] = [
        ("latency_ms", "min", "milliseconds", "ms", ""),
        ("latency_ms_batch32", "min", "milliseconds", "ms per batch of 32", ""),
    ]
    if ships:
        rows.append(("latency_ms_p90", "min", "milliseconds", "ms p90", ""))
        rows.append(("latency_ms_batch32_p90", "min", "milliseconds", "ms p90 per batch of 32", ""))
    if runtime in GPU_RUNTIMES:
        # Throughput with a batch that fills the GPU.
        rows.append(("sentences_per_s", "max", "count", "sentences/s", ""))
    else:
        rows.append(("bytes", "min", "bytes", "", ""))
    rows.append(("speedup", "max", "times", "faster", "latency_ms"))
    rows.append(("speedup_batch32", "max", "times", "faster per batch of 32", "latency_ms_batch32"))
    # PyTorch saves the weights alone: a ratio of their bytes would say no more than the ratio of the exports.
    if runtime in ("onnx", "int8"):
        rows.append(("compression", "max", "times", "smaller", "bytes"))
    return {
        name: Figure(
            f"{name}{ending}", direction, form, f"{unit_words} {words}".strip(),
            heading=unit_words if ships and name in MAIN else "", column=MAIN.get(name) if ships else None,
            planned=ships and not name.endswith("_p90"), runtime=runtime,
            over_models="sum" if against or name == "bytes" else "mean",
            against=f"{against}{ending}" if against else "", of_shape=of_shape if name == "bytes" else None,
        )
        for name, direction, form, unit_words, against in rows
    }  # fmt: skip


_EXPORT = _run_by("onnx", of_shape=sizes.export_bytes)
_INT8, _TORCH = _run_by("int8", "in 8 bits"), _run_by("torch", "in PyTorch", sizes.weight_bytes)
_GPU, _GPU_BF16 = _run_by("gpu", "on a GPU"), _run_by("gpu_bf16", "on a GPU in bf16")
LATENCY, BYTES, SPEEDUP = _EXPORT["latency_ms"], _EXPORT["bytes"], _EXPORT["speedup"]
COMPRESSION = _EXPORT["compression"]
TORCH_LATENCY = _TORCH["latency_ms"]
TORCH_LATENCY_BATCH = _TORCH["latency_ms_batch32"]
EXPORTED = (*_EXPORT.values(), *_INT8.values())
"""Figures that a model without an export does not have."""
# The only cost of a trial that is unknown before training.
WALL_S = Figure("wall_s", "min", "seconds", "s of training")
COSTS = (
    *(figure for figure in _EXPORT.values() if figure.form == "milliseconds"),
    PARAMETERS,
    # The same with every piece of a checkpoint's vocabulary, and with only the pieces of its text.
    Figure(
        "parameters_unpruned", "min", "count", "parameters with all pieces",
        planned=False, of_shape=sizes.parameters_unpruned,
    ),
    Figure(
        "parameters_pruned", "min", "count", "parameters with its text's pieces",
        planned=False, of_shape=sizes.parameters_pruned,
    ),
    BYTES,
    # Ratios compare like with like: teacher and student in the same runtime, both pruned.
    *(figure for figure in _EXPORT.values() if figure.against),
    *_INT8.values(),
    *_TORCH.values(),
    *_GPU.values(),
    *_GPU_BF16.values(),
    TRAINING_SPEED,
    TRAINING_SPEED_GPU,
    WALL_S,
)  # fmt: skip
SIZES = tuple(figure for figure in COSTS if figure.of_shape is not None)
FIGURES: tuple[Figure, ...] = (*SCORES, TARGET_DEV, *COSTS)
COLUMNS = tuple(figure for figure in COSTS if figure.column is not None)
"""Costs with a column in tables, from left to right."""


def cost_columns(objectives: Directions = MappingProxyType({})) -> tuple[Figure, ...]:
    """Return the costs with a column in tables, from left to right: the usual ones, and the objectives.

    Args:
        objectives: Name of a figure → "max" or "min".
    """
    return tuple(figure for figure in COSTS if figure.column is not None or figure.name in objectives)


def score_figures(
    score_name: str, *, targets: bool, among: Sequence[TrialOrTeacher] = (), agreement: bool = False
) -> tuple[Figure, ...]:
    """Return the scores of a sweep: dev, test and target languages, then the further metrics of its task.

    Args:
        score_name: Name of the task's score.
        targets: Whether to include target languages.
        among: Trials and teachers that are shown. If some have further metrics, only their metrics are returned: tasks
            whose scores have one name may have different further metrics. Agreement is returned if some have it.
        agreement: Whether to include agreement all the same.
    """
    figures = tuple(
        figure
        for figure in SCORES
        if figure.score and figure.belongs_to(score_name) and (targets or figure.score[1] == "source")
    )
    metrics = {figure.metric for figure in figures for scored in among if figure.read(scored) is not None}
    task_metrics = {figure.metric for figure in figures if figure.beside and not metrics - {"", AGREEMENT}}
    shown = {"", *metrics, *task_metrics, *((AGREEMENT,) if agreement else ())}
    return tuple(figure for figure in figures if figure.metric in shown)


def default_objectives(score_name: str, *, exported: bool = True) -> dict[str, Direction]:
    """Return the default objectives of a sweep: score, latency and parameters.

    Args:
        score_name: Name of the task's score.
        exported: Whether the students have an export; without one, the latency is that in PyTorch.
    """
    costs = (LATENCY if exported else TORCH_LATENCY, PARAMETERS)
    return {score_name: DEV.direction, **{figure.name: figure.direction for figure in costs}}


OBJECTIVES: Directions = MappingProxyType(default_objectives("score"))
"""Default objectives for any task: `score` is an alias of the task's score."""


def selectable_figures(score_name: str) -> dict[str, Figure]:
    """Return the figures for choosing students, under all their names.

    Args:
        score_name: Name of the task's score.
    """
    figures = [figure for figure in FIGURES if figure.selectable and figure.belongs_to(score_name)]
    return {name: figure for figure in figures for name in figure.accepted_names(score_name)}


def selection_fault(name: str, names: Sequence[str], score_name: str) -> str | None:
    """Return why `name` cannot select students; None if it can.

    Args:
        name: The name that the user wrote.
        names: The names that can select.
        score_name: Name of the task's score.
    """
    if name in names:
        return None
    if name.startswith(("test", "target")):
        return f"{name!r} cannot select; {HIDDEN}"
    message = unknown_message(name, tuple(names), noun="name ")
    return message if "did you mean" in message else f"{message}; for the task's score write {score_name}"


def objective_fault(name: str, direction: str, score_name: str) -> str | None:
    """Return the fault in one entry of `search.objectives`; None if there is none.

    Args:
        name: The key of the entry.
        direction: The value of the entry.
        score_name: Name of the task's score.
    """
    # Without aliases: a score under two names would count twice.
    figures = {score_name: DEV, **{figure.name: figure for figure in COSTS if figure.selectable}}
    # Allowed, but in no hint: a search on target languages is no longer zero-shot.
    of_targets = {TARGET_DEV.full_name(score_name): TARGET_DEV}
    fault = None if name in of_targets else selection_fault(name, tuple(figures), score_name)
    figures |= of_targets
    if fault is None and direction != figures[name].direction:
        return f"got {direction!r}; write {name}: {figures[name].direction}"
    return fault


def objective_values(trial: Trial, objectives: Directions) -> list[float | None]:
    """Return a trial's values for search, front and hypervolume, in the order of `objectives`.

    Args:
        trial: The trial.
        objectives: Name of a figure → "max" or "min".

    Returns:
        One value per objective, timed costs on the grid of the sweep; None if unknown.

    Raises:
        KeyError: A name cannot select.
    """
    figures = selectable_figures(trial.score_name)
    return [figures[name].compared_value(trial) for name in objectives]


def main_latency(objectives: Directions) -> Figure:
    """Return the latency for drawing a front: the first latency among the objectives, else `latency_ms`.

    Args:
        objectives: Name of a figure → "max" or "min".
    """
    timed = {figure.name: figure for figure in COSTS if figure.form == "milliseconds"}
    return next((timed[name] for name in objectives if name in timed), LATENCY)


def extra_runtimes(names: Iterable[str]) -> tuple[Runtime, ...]:
    """Return the runtimes of the named figures, without `onnx`, which is always measured.

    Args:
        names: Names of figures.
    """
    runtimes = {figure.runtime for figure in COSTS if figure.name in set(names)}
    optional: tuple[Runtime, ...] = ("int8", "torch", *GPU_RUNTIMES)
    return tuple(runtime for runtime in optional if runtime in runtimes)
