"""Everything that is known of a trial as one number: scores and costs, in one table.

The store, the search, the front, `--where` and `--best`, the terminal, the HTML page, CSV, Parquet and MLflow read it.
To add a size, write its function in `sizes.py` and add an entry with it to `COSTS`. What is timed has an entry too, and
`precompute/model_cost.py` times it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Literal

from raykd.figures import sizes
from raykd.figures.cost_grid import round_to_grid
from raykd.figures.results import Cost, Group, Part
from raykd.figures.sizes import Shape
from raykd.figures.trial import TrialOrTeacher, Trial
from raykd.spec.messages import unknown_message

Direction = Literal["max", "min"]
Directions = Mapping[str, Direction]
"""What is searched for: the name of a figure → whether it is to be large or small."""
Form = Literal["percent", "count", "bytes", "milliseconds", "seconds", "times", "decimal"]
Runtime = Literal["onnx", "int8", "torch", "gpu", "gpu_bf16"]
"""A model is run from its export by ONNX Runtime, in float32 (`onnx`) or with weights of 8 bits (`int8`), by PyTorch
(`torch`), or by PyTorch on a GPU, as one CUDA graph for each shape of a batch (`gpu`, under bf16 `gpu_bf16`)."""
GPU_RUNTIMES: tuple[Runtime, ...] = ("gpu", "gpu_bf16")
ENDINGS: Mapping[Runtime, str] = MappingProxyType(
    {"onnx": "", "int8": "_int8", "torch": "_torch", "gpu": "_gpu", "gpu_bf16": "_gpu_bf16"}
)
"""How the names of a runtime's figures end."""
OfShape = Callable[[Shape], float | None]

HIDDEN = "selection is on dev: test scores are only reported, so that they stay honest estimates"


@dataclass(frozen=True)
class Figure:
    """One figure of a trial, or of the teacher it is compared with."""

    name: str
    """In sweep files, `--where`, MLflow and CSV; `{score}` stands for the name of the task's score."""
    direction: Direction
    """Which way is better."""
    form: Form
    """How `report/readable_numbers.py` writes it."""
    words: str = ""
    """What follows the number in a sentence."""
    heading: str = ""
    """Of its column; `{label}` stands for what people call the task's score."""
    short: str = ""
    """Its heading where space is short, if that is another one."""
    column: int | None = None
    """None: no column in tables. On a narrow terminal higher numbers are left out first; 0 always stays."""
    planned: bool = True
    """Whether `raykd plan` shows it of every shape, where it is known before training."""
    over_models: Literal["sum", "mean"] = "sum"
    """Of several models that share the work by language: sizes add up, a sentence is labelled by one of them."""
    against: str = ""
    """Of a ratio: the figure of which it is the teachers' over the student's."""
    aliases: tuple[str, ...] = ()
    """Other names by which `--where` and `--best` know it."""
    score: tuple[Part, Group, str] | None = None
    """Of a score: which part, which group of languages, and which metric beside the task's own; empty: its own."""
    beside: str = ""
    """The name of the task's score beside which there is such a figure; empty: it is of every task."""
    runtime: Runtime | None = None
    """Of which form of the model it is; None: of any."""
    of_shape: OfShape | None = None
    """Of a size: computes it; None where it is not known."""

    @property
    def part(self) -> Part | None:
        """Of a score: which part."""
        return self.score and self.score[0]

    @property
    def metric(self) -> str:
        """Of a score: which metric beside the task's own; empty: its own."""
        return self.score[2] if self.score else ""

    @property
    def known_before_training(self) -> bool:
        """Whether it is known of a student before it is trained."""
        return self.score is None and self.name != "wall_s"

    @property
    def selectable(self) -> bool:
        """Whether students may be searched and chosen by it."""
        return self.part in (None, "dev")

    def read(self, scored: TrialOrTeacher) -> float | None:
        """Return its value; None: not known."""
        if self.score is not None:
            return scored.scores.mean(*self.score)
        return scored.cost.get(self.name) if self.known_before_training else getattr(scored, self.name, None)

    def compared_value(self, trial: Trial) -> float | None:
        """Return the value that decides between students: of what is timed, on the grid of the sweep, whose steps are
        as wide as the noise of a measurement; of all else the value itself.
        """
        value, name = self.read(trial), self.against or self.name
        if value is None or name not in trial.grid or name not in trial.cost:
            return value
        exact = trial.cost[name]
        rounded = round_to_grid(exact, *trial.grid[name])
        return value * exact / rounded if self.against else rounded

    def full_name(self, score_name: str) -> str:
        """Its name in a sweep whose task has that score."""
        return self.name.format(score=score_name)

    def accepted_names(self, score_name: str) -> tuple[str, ...]:
        """Its name and its other names, in a sweep whose task has that score."""
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
    """A metric beside a task's score on dev, on test, and on test of target languages; `aliases` of the first."""
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
# Where `corpus.zero_shot_dev` has it read.
TARGET_DEV = Figure("dev_{score}_target", "max", "percent", heading="dev target", score=("dev", "target", ""))
SCORES = (
    DEV,
    TEST,
    TARGET,
    # Unlabelled attachment beside labelled, and words whose head is not the model's best one, so that heads are a tree.
    *_scores_beside("las", "uas", "UAS", aliases=("uas",)),
    Figure(
        "test_repairs", "min", "percent",
        heading="repaired heads", short="repaired", beside="las", score=("test", "source", "repairs"),
    ),
    # Intents and slots beside both; of trees of them their roots, and how much of what is generated is a tree.
    *_scores_beside("exact_match", "intent_accuracy", "intent", aliases=("intent_accuracy",)),
    *_scores_beside("exact_match", "slot_f1", "slot F1", aliases=("slot_f1",)),
    *_scores_beside("exact_match", "well_formed", "trees", aliases=("well_formed",)),
    # Of a masked language model.
    *_scores_beside("mlm_score", "perplexity", "perplexity", direction="min", form="decimal"),
)  # fmt: skip

# Pieces a second, forward, backward and a step of the optimiser, of batches of 32 sentences on one thread.
TRAINING_SPEED, TRAINING_SPEED_GPU = (
    Figure(f"training_pieces_per_s{ending}", "max", "count", words, planned=False, over_models="mean")
    for ending, words in (("", "pieces/s in training"), ("_gpu", "pieces/s in training on a GPU"))
)
PARAMETERS = Figure(
    "parameters", "min", "count", "parameters",
    heading="parameters", short="params", column=0, of_shape=sizes.parameters,
)  # fmt: skip
MAIN = {"latency_ms": 0, "speedup": 3, "compression": 3}
"""Figures of the export in float32 that have a column in tables, and which."""


def _run_by(runtime: Runtime, words: str = "", of_shape: OfShape | None = None) -> dict[str, Figure]:
    """Costs of a model in one form, by their names without the ending: p50 of one sentence and of a whole batch of 32
    on one thread or a GPU, and the bytes of its weights (by `of_shape`) with those pieces alone that the text has. A
    ratio compares the teachers in the same form.
    """
    ending, ships = ENDINGS[runtime], runtime == "onnx"
    rows: list[tuple[str, Direction, Form, str, str]] = [
        ("latency_ms", "min", "milliseconds", "ms", ""),
        ("latency_ms_batch32", "min", "milliseconds", "ms per batch of 32", ""),
    ]
    if ships:
        rows.append(("latency_ms_p90", "min", "milliseconds", "ms p90", ""))
        rows.append(("latency_ms_batch32_p90", "min", "milliseconds", "ms p90 per batch of 32", ""))
    if runtime in GPU_RUNTIMES:
        # Of the batch with which the GPU is full.
        rows.append(("sentences_per_s", "max", "count", "sentences/s", ""))
    else:
        rows.append(("bytes", "min", "bytes", "", ""))
    rows.append(("speedup", "max", "times", "faster", "latency_ms"))
    rows.append(("speedup_batch32", "max", "times", "faster per batch of 32", "latency_ms_batch32"))
    # The weights alone are what is saved of a model in PyTorch: a ratio of them says no more than that of the exports.
    if runtime in ("onnx", "int8"):
        rows.append(("compression", "max", "times", "smaller", "bytes"))
    return {
        name: Figure(
            f"{name}{ending}", direction, form, f"{own_words} {words}".strip(),
            heading=own_words if ships and name in MAIN else "", column=MAIN.get(name) if ships else None,
            planned=ships and not name.endswith("_p90"), runtime=runtime,
            over_models="sum" if against or name == "bytes" else "mean",
            against=f"{against}{ending}" if against else "", of_shape=of_shape if name == "bytes" else None,
        )
        for name, direction, form, own_words, against in rows
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
# The one figure of a trial's costs that is not known before it is trained.
WALL_S = Figure("wall_s", "min", "seconds", "s of training")
COSTS = (
    *(figure for figure in _EXPORT.values() if figure.form == "milliseconds"),
    PARAMETERS,
    # With every piece of a checkpoint's vocabulary, and with those of its text alone, whichever it reads.
    Figure(
        "parameters_unpruned", "min", "count", "parameters with all pieces",
        planned=False, of_shape=sizes.parameters_unpruned,
    ),
    Figure(
        "parameters_pruned", "min", "count", "parameters with its text's pieces",
        planned=False, of_shape=sizes.parameters_pruned,
    ),
    BYTES,
    # Like for like: both in the same form, and both pruned.
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
    """The costs with a column in tables, from left to right: the usual ones, and those that are searched for."""
    return tuple(figure for figure in COSTS if figure.column is not None or figure.name in objectives)


def score_figures(
    score_name: str, *, targets: bool, among: Sequence[TrialOrTeacher] = ()
) -> tuple[Figure, ...]:
    """The scores of a sweep whose task has that score: dev, test and, with `targets`, that of target languages; then
    the same of the metrics beside it. Where trials or teachers `among` which they are shown have metrics beside their
    score, it is these alone: tasks whose scores have one name may have others beside it.
    """
    found = tuple(
        figure
        for figure in SCORES
        if figure.score and figure.beside in ("", score_name) and (targets or figure.score[1] == "source")
    )
    known = {figure.metric for figure in found for each in among if figure.read(each) is not None}
    return tuple(figure for figure in found if not known - {""} or figure.metric in {"", *known})


def has_values(figure: Figure, every: Iterable[TrialOrTeacher]) -> bool:
    """Whether the figure is known of any of them."""
    return any(figure.read(each) is not None for each in every)


def default_objectives(score_name: str, *, exported: bool = True) -> dict[str, Direction]:
    """The default objectives of a sweep; `exported`: whether its students have an export."""
    costs = (LATENCY if exported else TORCH_LATENCY, PARAMETERS)
    return {score_name: DEV.direction, **{figure.name: figure.direction for figure in costs}}


OBJECTIVES: Directions = MappingProxyType(default_objectives("score"))
"""The same for any task: `score` is another name of its own score."""


def selectable_figures(score_name: str) -> dict[str, Figure]:
    """The figures that students may be chosen by, under each of their names."""
    own = [figure for figure in FIGURES if figure.selectable and figure.beside in ("", score_name)]
    return {name: figure for figure in own for name in figure.accepted_names(score_name)}


def selection_fault(name: str, known: Sequence[str], score_name: str) -> str | None:
    """Why `name` cannot select students where `known` can; None if it is one of them."""
    if name in known:
        return None
    if name.startswith(("test", "target")):
        return f"{name!r} cannot select; {HIDDEN}"
    message = unknown_message(name, tuple(known), what="name ")
    return message if "did you mean" in message else f"{message}; for the task's score write {score_name}"


def objective_fault(name: str, direction: str, score_name: str) -> str | None:
    """What is wrong with one entry of `search.objectives` in a sweep whose task has that score; None: nothing."""
    # One name each: a score that is asked for twice under two names would count twice.
    known = {score_name: DEV, **{figure.name: figure for figure in COSTS if figure.selectable}}
    # Nobody is led to it by a hint.
    of_targets = {TARGET_DEV.full_name(score_name): TARGET_DEV}
    fault = None if name in of_targets else selection_fault(name, tuple(known), score_name)
    known |= of_targets
    if fault is None and direction != known[name].direction:
        return f"got {direction!r}; {name} is wanted at its {known[name].direction}"
    return fault


def objective_values(trial: Trial, objectives: Directions) -> list[float | None]:
    """The figures that `objectives` names as search, front and hypervolume compare them, in their order: costs that are
    timed on the grid of the sweep. Raises KeyError for a name that cannot select.
    """
    known = selectable_figures(trial.score_name)
    return [known[name].compared_value(trial) for name in objectives]


def main_latency(objectives: Directions) -> Figure:
    """The latency by which a front is drawn and ordered: the first that is searched for, else `latency_ms`."""
    timed = {figure.name: figure for figure in COSTS if figure.form == "milliseconds"}
    return next((timed[name] for name in objectives if name in timed), LATENCY)


def extra_runtimes(names: Iterable[str]) -> tuple[Runtime, ...]:
    """The runtimes that figures of these names are of, beside the one that is always measured."""
    found = {figure.runtime for figure in COSTS if figure.name in set(names)}
    others: tuple[Runtime, ...] = ("int8", "torch", *GPU_RUNTIMES)
    return tuple(runtime for runtime in others if runtime in found)


def score_values(figure: Figure, scored: TrialOrTeacher) -> dict[str, float | None]:
    """A score's mean and its standard deviations over seeds and over languages, by their names in CSV and MLflow."""
    if figure.score is None:
        raise ValueError(f"{figure.name} is not a score")
    name, score = figure.full_name(scored.score_name), scored.scores.get(*figure.score)
    return {
        name: score and score.mean,
        f"{name}_sd": score and score.sd,
        f"{name}_languages_sd": score and score.languages_sd,
    }


def language_values(figure: Figure, scored: TrialOrTeacher) -> dict[str, float]:
    """Each language's own mean on the part that the score is of; on test source and target languages."""
    if figure.score is None:
        raise ValueError(f"{figure.name} is not a score")
    return scored.scores.by_language(figure.score[0], figure.metric)


def compute_sizes(shape: Shape) -> dict[str, float]:
    """The sizes of a shape by their names, without those that are not known."""
    return {
        figure.name: value
        for figure in SIZES
        if figure.of_shape is not None and (value := figure.of_shape(shape)) is not None
    }


def combine_model_costs(costs: Iterable[Cost]) -> dict[str, float]:
    """The cost of several models that share the work by language, each figure as its entry says. A part that several
    of them have, such as one frozen encoder, counts once.
    """
    every = list(costs)
    parts = [part for cost in every for part in cost.shared.items()]
    again = [own for place, (key, own) in enumerate(parts) if key in dict(parts[:place])]
    combined: dict[str, float] = {}
    for figure in COSTS:
        known = [cost.figures[figure.name] for cost in every if figure.name in cost.figures]
        if known and len(known) == len(every):
            twice = sum(own.get(figure.name, 0) for own in again)
            combined[figure.name] = sum(known) - twice if figure.over_models == "sum" else fmean(known)
    return combined
