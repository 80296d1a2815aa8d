"""What of a stage does not fit the other sections of its recipe: signals, layers, text, schedules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from raykd.identity import PlainObject
from raykd.needs import explain_unmet_needs
from raykd.objectives import Mix
from raykd.recipes.recipe import RUN_SETTINGS, Recipe, Stage, resolve_stage, stage_objective
from raykd.signals import Need
from raykd.spec import KeyPath
from raykd.students import STUDENTS

if TYPE_CHECKING:
    from raykd.objectives import Objective

# What makes a need go away, where a teacher cannot meet it.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "kbest": "set k: 1",
        "pairs": "give the student decoder: maxent",
        "softened": "set temperature_mode: local",
        "emissions": "use posterior, token or structural",
    }
)


def stage_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """(path, message) for each mismatch of a stage, which stands at the path `where`."""
    kind = (*where, "objective", "kind")
    faults: list[tuple[KeyPath, str]] = [
        (kind, message) for message in _signal_faults(recipe, stage.objective)
    ]
    faults += _layer_faults(recipe, stage.objective, (*where, "objective"))
    models = {"teachers": recipe.teachers, "student": recipe.student}
    if stage.objective.maxent_only and any(model.has_transitions for model in models.values()):
        got = ", ".join(f"{section}: {model.decoder}" for section, model in models.items())
        message = f"{stage.objective.kind!r} is between MaxEnt models, got {got}; use 'structural'"
        faults.append((kind, message))
    faults += _text_faults(recipe, stage, where)
    faults += _schedule_faults(recipe, stage, where)
    if not stage.objective.reads_scores and stage.layers == ("head",):
        message = f"{stage.objective.kind!r} reads hidden states, on which the head has no effect"
        faults.append(((*where, "layers"), f"{message}; name other layers"))
    if "projection" in stage.layers and recipe.student.projection is None:
        hint = "set student.projection, or omit it here"
        faults.append(((*where, "layers"), f"the student has no layer group 'projection'; {hint}"))
    own = stage.training.model_fields_set if stage.training is not None else ()
    hint = "holds for the whole run; write it in the sweep file's own training"
    return faults + [((*where, "training", name), f"{name} {hint}") for name in RUN_SETTINGS if name in own]


def _schedule_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Learning rates that need an end, and held-out losses that change from epoch to epoch."""
    resolved = resolve_stage(stage, recipe, unlabelled=recipe.corpus.has_text)
    training = {**recipe.training.model_dump(mode="json"), **resolved["training"]}
    faults = [
        ((*where, "schedule"), message)
        for message in endless_schedule_faults(resolved["schedule"], training, "schedule")
    ]
    weighed = stage_objective(stage, unlabelled=recipe.corpus.has_text)
    if stage.select == "loss" and weighed.follows_lambda and resolved["schedule"]["anneal_rate"]:
        message = (
            "the loss has other weights in each epoch (λ falls), so that epochs cannot be compared by it"
        )
        faults.append(((*where, "select"), f"{message}; set schedule.anneal_rate: 0, or select: dev"))
    return faults


def endless_schedule_faults(schedule: PlainObject, training: PlainObject, name: str) -> list[str]:
    """What of the learning rate needs to know when training ends, where only patience ends it."""
    if any(schedule[limit] is not None for limit in ("epochs", "max_steps")):
        return []
    rate = training["learning_rate_schedule"]
    needing = [f"learning_rate_schedule: {rate}"] if rate in ("cosine", "linear") else []
    needing += ["warmup"] if training["warmup"] else []
    hint = f"set {name}.epochs or {name}.max_steps beside patience"
    return [f"training.{setting} counts steps up to the last possible one; {hint}" for setting in needing]


def _text_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Text that the corpus lacks, or of which the objective has nothing."""
    has_text, objective, text = recipe.corpus.has_text, stage.objective, (*where, "text")
    faults: list[tuple[KeyPath, str]] = []
    if objective.needs_unlabelled and not has_text:
        hint = "without unlabelled text it is the same as 'gold': set corpus.unlabelled, or use 'top_k' with k: 1"
        faults.append(((*where, "objective", "kind"), hint))
    elif objective.needs_unlabelled and stage.text == "labelled":
        hint = "set text: all, or use 'gold'"
        faults.append((text, f"on labelled text {objective.kind!r} is the same as 'gold'; {hint}"))
    if stage.text in ("unlabelled", "all") and not has_text:
        faults.append((text, "the corpus has no unlabelled text; set corpus.unlabelled"))
    if stage.text == "unlabelled" and objective.text == "labelled":
        faults.append((text, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults + _part_faults(stage, where, has_text=has_text)


def _part_faults(stage: Stage, where: KeyPath, *, has_text: bool) -> list[tuple[KeyPath, str]]:
    """Parts of a mix that are of text that the corpus or the stage lacks, or of which they have nothing."""
    faults: list[tuple[KeyPath, str]] = []
    for place, part in enumerate(stage.objective.parts if isinstance(stage.objective, Mix) else ()):
        path = (*where, "objective", "parts", place, "text")
        if part.text == "unlabelled" and not has_text:
            faults.append((path, "the corpus has no unlabelled text; set corpus.unlabelled"))
        elif "all" not in (part.text, stage.text or "all") and part.text != stage.text:
            faults.append((path, f"the stage is trained on {stage.text} text alone; set its text: all"))
        elif part.text == "unlabelled" and part.objective.text == "labelled":
            faults.append((path, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults


def _signal_faults(recipe: Recipe, objective: Objective) -> list[str]:
    """The signals that an objective or the student's decoder reads and the teacher does not offer."""
    needs = list(objective.needs)
    if objective.reads_pairs and recipe.student.has_transitions:
        needs.append(Need("pairs"))
    lacking = explain_unmet_needs(needs, recipe.teachers.offers)
    if not lacking:
        return []
    if not recipe.teachers.offers:
        return [
            f"{objective.kind!r} learns from a teacher, and there is none; set teachers, or objective: {{kind: gold}}"
        ]
    unmet = [need.signal for need in needs if explain_unmet_needs([need], recipe.teachers.offers)]
    hints = [_HINTS[signal] for signal in unmet if signal in _HINTS]
    if not explain_unmet_needs(needs, recipe.teachers.own_signals):
        hints.append("or set teachers.combine: scores")
    hint = "".join(f"; {hint}" for hint in dict.fromkeys(hints))
    return [f"{lacking} (teacher {recipe.teachers.kind!r}){hint}"]


def _layer_faults(recipe: Recipe, objective: Objective, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Layers that an objective reads and that the teacher's or the student's encoder does not have; of a mix, those of
    its parts.
    """
    if isinstance(objective, Mix):
        own = enumerate(objective.parts)
        return [
            fault
            for place, part in own
            for fault in _layer_faults(recipe, part.objective, (*where, "parts", place, "objective"))
        ]
    teacher = [need.layer for need in objective.needs if need.layer is not None]
    inside = objective.piece_layers + objective.attention_layers
    if inside and not recipe.student.shows_pieces:
        message = f"{objective.kind!r} reads every piece of a Transformers encoder, which student"
        kinds = " or ".join(name for name, kind in STUDENTS.items() if kind.shows_pieces)
        hint = f"set student.kind: {kinds}, or use 'representation'"
        return [((*where, "kind"), f"{message} {recipe.student.kind!r} is not; {hint}")]
    sides = (
        ("teacher", "layers" if inside else "layer", recipe.teachers.depth, teacher),
        ("student", "student_layer", recipe.student.depth, objective.label_layers),
        ("student", "student_layers", recipe.student.depth, inside),
    )
    return [
        ((*where, key), f"the {side}'s encoder has no layer {layer}; choose from 0 (its input) to {depth}")
        for side, key, depth, layers in sides
        for layer in layers
        if depth is not None and not -depth - 1 <= layer <= depth
    ]
