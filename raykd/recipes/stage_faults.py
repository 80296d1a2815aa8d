"""Faults between a stage and the rest of the recipe: signals, layers, text, schedules."""

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

# Signal → a setting that does without it, for teachers that do not offer the signal.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "kbest": "set k: 1",
        "weighted_paths": "set k: 1",
        "pairs": "give the student decoder: maxent",
        "soft_marginals": "set temperature: 1",
        "softened": "set temperature_mode: local",
        "emissions": "use posterior, token or structural",
    }
)


def stage_faults(recipe: Recipe, stage: Stage, stage_path: KeyPath) -> list[tuple[KeyPath, str]]:
    """Return (key path, message) for each mismatch between a stage and the other sections.

    Args:
        recipe: A recipe whose sections are valid one by one.
        stage: One of its stages.
        stage_path: Key path of the stage; empty for the short form, `objective` at the top level.
    """
    kind_path = (*stage_path, "objective", "kind")
    faults: list[tuple[KeyPath, str]] = [
        (kind_path, message) for message in _signal_faults(recipe, stage.objective)
    ]
    faults += _layer_faults(recipe, stage.objective, (*stage_path, "objective"))
    models = {"teachers": recipe.teachers, "student": recipe.student}
    if stage.objective.maxent_only and any(model.has_transitions for model in models.values()):
        decoders = ", ".join(f"{section}: {model.decoder}" for section, model in models.items())
        message = f"{stage.objective.kind!r} is between MaxEnt models, got {decoders}; use 'structural'"
        faults.append((kind_path, message))
    parts = stage.objective.parts if isinstance(stage.objective, Mix) else ()
    reads_gold = any(
        objective.text == "labelled" for objective in (stage.objective, *(p.objective for p in parts))
    )
    if recipe.corpus.annotator_labels and reads_gold:
        hint = "use 'top_1', which learns the teacher's labels"
        faults.append((kind_path, f"the corpus has no gold labels, which 'gold' reads; {hint}"))
    faults += _text_faults(recipe, stage, stage_path)
    faults += _schedule_faults(recipe, stage, stage_path)
    if not stage.objective.reads_scores and stage.layers == ("head",):
        message = f"{stage.objective.kind!r} reads hidden states, on which the head has no effect"
        faults.append(((*stage_path, "layers"), f"{message}; name other layers"))
    if "projection" in stage.layers and recipe.student.projection is None:
        hint = "set student.projection, or omit it here"
        faults.append(((*stage_path, "layers"), f"the student has no layer group 'projection'; {hint}"))
    stage_settings = stage.training.model_fields_set if stage.training is not None else ()
    hint = "holds for the whole run; write it in the sweep file's own training"
    return faults + [
        ((*stage_path, "training", name), f"{name} {hint}") for name in RUN_SETTINGS if name in stage_settings
    ]


def _schedule_faults(recipe: Recipe, stage: Stage, stage_path: KeyPath) -> list[tuple[KeyPath, str]]:
    """Learning rates without a fixed end, and held-out losses that change from epoch to epoch."""
    resolved = resolve_stage(stage, recipe, unlabelled=recipe.corpus.has_text)
    training = {**recipe.training.model_dump(mode="json"), **resolved["training"]}
    faults = [
        ((*stage_path, "schedule"), message)
        for message in endless_schedule_faults(resolved["schedule"], training, "schedule")
    ]
    objective = stage_objective(stage, unlabelled=recipe.corpus.has_text)
    if stage.select == "loss" and objective.follows_lambda and resolved["schedule"]["anneal_rate"]:
        message = (
            "the loss has other weights in each epoch (λ falls), so that epochs cannot be compared by it"
        )
        faults.append(((*stage_path, "select"), f"{message}; set schedule.anneal_rate: 0, or select: dev"))
    return faults


def endless_schedule_faults(schedule: PlainObject, training: PlainObject, name: str) -> list[str]:
    """Return messages on learning-rate settings that need a fixed number of steps, if the schedule has none.

    Args:
        schedule: `epochs` and `max_steps`; None for no limit.
        training: Training settings as plain data.
        name: Section with the keys of the schedule, for the hint.
    """
    if any(schedule[limit] is not None for limit in ("epochs", "max_steps")):
        return []
    rate = training["learning_rate_schedule"]
    settings = [f"learning_rate_schedule: {rate}"] if rate in ("cosine", "linear") else []
    settings += ["warmup"] if training["warmup"] else []
    hint = f"set {name}.epochs or {name}.max_steps beside patience"
    return [f"training.{setting} needs a fixed number of steps; {hint}" for setting in settings]


def _text_faults(recipe: Recipe, stage: Stage, stage_path: KeyPath) -> list[tuple[KeyPath, str]]:
    """Text missing from the corpus, or useless to the objective."""
    has_text, objective, text_path = recipe.corpus.has_text, stage.objective, (*stage_path, "text")
    faults: list[tuple[KeyPath, str]] = []
    if objective.needs_unlabelled and not has_text:
        hint = "without unlabelled text it is the same as 'gold': set corpus.unlabelled, or use 'top_k' with k: 1"
        faults.append(((*stage_path, "objective", "kind"), hint))
    elif objective.needs_unlabelled and stage.text == "labelled":
        hint = "set text: all, or use 'gold'"
        faults.append((text_path, f"on labelled text {objective.kind!r} is the same as 'gold'; {hint}"))
    if stage.text in ("unlabelled", "all") and not has_text:
        faults.append((text_path, "the corpus has no unlabelled text; set corpus.unlabelled"))
    if stage.text == "unlabelled" and objective.text == "labelled":
        faults.append((text_path, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults + _part_faults(stage, stage_path, has_text=has_text)


def _part_faults(stage: Stage, stage_path: KeyPath, *, has_text: bool) -> list[tuple[KeyPath, str]]:
    """Parts of a mix on text missing from the corpus or the stage, or useless to the part."""
    faults: list[tuple[KeyPath, str]] = []
    for index, part in enumerate(stage.objective.parts if isinstance(stage.objective, Mix) else ()):
        path = (*stage_path, "objective", "parts", index, "text")
        if part.text == "unlabelled" and not has_text:
            faults.append((path, "the corpus has no unlabelled text; set corpus.unlabelled"))
        elif "all" not in (part.text, stage.text or "all") and part.text != stage.text:
            faults.append((path, f"the stage is trained on {stage.text} text alone; set its text: all"))
        elif part.text == "unlabelled" and part.objective.text == "labelled":
            faults.append((path, "gold labels say nothing about unlabelled text; use 'top_1'"))
    return faults


def _signal_faults(recipe: Recipe, objective: Objective) -> list[str]:
    """Signals missing from the teacher's offers, for the objective or the student's decoder."""
    needs = list(objective.needs)
    if objective.reads_pairs and recipe.student.has_transitions:
        needs.append(Need("pairs"))
    problem = explain_unmet_needs(needs, recipe.teachers.offers)
    if not problem:
        return []
    if not recipe.teachers.offers:
        return [
            f"{objective.kind!r} learns from a teacher, and there is none; set teachers, or objective: {{kind: gold}}"
        ]
    unmet = [need.signal for need in needs if explain_unmet_needs([need], recipe.teachers.offers)]
    hints = [_HINTS[signal] for signal in unmet if signal in _HINTS]
    if "kbest" in unmet and not explain_unmet_needs([Need("samples")], recipe.teachers.offers):
        hints = ["use top_wk at temperature: 1, which reads all samples with their weights"]
    if not explain_unmet_needs(needs, recipe.teachers.model_signals):
        hints.append("or set teachers.combine: scores")
    hint = "".join(f"; {hint}" for hint in dict.fromkeys(hints))
    return [f"{problem} (teacher {recipe.teachers.kind!r}){hint}"]


def _layer_faults(recipe: Recipe, objective: Objective, objective_path: KeyPath) -> list[tuple[KeyPath, str]]:
    """Layers of the objective missing from the encoder of teacher or student; of a mix, layers of its parts."""
    if isinstance(objective, Mix):
        return [
            fault
            for index, part in enumerate(objective.parts)
            for fault in _layer_faults(recipe, part.objective, (*objective_path, "parts", index, "objective"))
        ]
    if objective.lacks_layers:
        hint = "name layers, or set student.path: teacher and student.layers"
        message = f"{objective.kind!r} compares the layers of a student that is cut from its teacher; {hint}"
        return [((*objective_path, "kind"), message)]
    teacher_layers = [need.layer for need in objective.needs if need.layer is not None]
    encoder_layers = objective.piece_layers + objective.attention_layers
    if encoder_layers and not recipe.student.shows_pieces:
        message = f"{objective.kind!r} reads every piece of a Transformers encoder, which student"
        kinds = " or ".join(name for name, kind in STUDENTS.items() if kind.shows_pieces)
        hint = f"set student.kind: {kinds}, or use 'representation'"
        return [((*objective_path, "kind"), f"{message} {recipe.student.kind!r} is not; {hint}")]
    sides = (
        ("teacher", "layers" if encoder_layers else "layer", recipe.teachers.depth, teacher_layers),
        ("student", "student_layer", recipe.student.depth, objective.label_layers),
        ("student", "student_layers", recipe.student.depth, encoder_layers),
    )
    return [
        (
            (*objective_path, key),
            f"the {side}'s encoder has no layer {layer}; choose from 0 (its input) to {depth}",
        )
        for side, key, depth, layers in sides
        for layer in layers
        if depth is not None and not -depth - 1 <= layer <= depth
    ]
