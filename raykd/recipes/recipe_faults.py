"""What no section of a recipe can see alone: mismatches between sections, each with its key path."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from raykd.corpora.predicted_pos import predicted_pos_of
from raykd.corpora.utterances import PARSERS
from raykd.forms.tree.codes import READ_POS
from raykd.layers.optimisation import Duration, TrainingConfig, with_an_end
from raykd.needs import missing
from raykd.objectives import Mix
from raykd.recipes.recipe import (
    OF_THE_RUN,
    Recipe,
    Stage,
    resolved_stage,
    resolved_vocabulary,
    stage_objective,
)
from raykd.recipes.resources import RunRole
from raykd.recipes.student_faults import student_faults
from raykd.signals import Need
from raykd.spec import KeyPath

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


LANGUAGE_MODELS = ("encoder", "pretrained_encoder")
"""The kinds of students that are masked language models."""
OPEN = (*LANGUAGE_MODELS, "pretrained", "seq2seq")
"""The kinds of students that give the inside of a Transformers encoder."""


def recipe_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """(path, message) for each mismatch."""
    faults: list[tuple[KeyPath, str]] = []
    for place, stage in enumerate(recipe.all_stages):
        listed: KeyPath = ("strategy", "stages") if recipe.strategy is not None else ("stages",)
        where: KeyPath = () if recipe.objective is not None else (*listed, place)
        faults += _stage_faults(recipe, stage, where)
    faults += _task_faults(recipe)
    faults += _language_model_faults(recipe)
    faults += _generation_faults(recipe)
    faults += _teacher_corpus_faults(recipe)
    faults += _language_faults(recipe)
    if recipe.teachers.trained:
        ends = with_an_end(recipe.teachers.model_dump(include=set(Duration.model_fields)))
        own = recipe.teachers.training.model_dump(mode="json")
        faults += [(("teachers",), message) for message in _endless_faults(ends, own, "teachers")]
    faults += student_faults(recipe, resolved_vocabulary(recipe))
    return faults + _precision_faults(recipe)


def _precision_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    trained: tuple[tuple[KeyPath, TrainingConfig, RunRole], ...] = (
        (("training",), recipe.training, "students"),
        (("teachers", "training"), recipe.teachers.training, "teachers"),
    )
    message = "'fp16' needs a GPU: set resources.gpus_per_worker, or use bf16 or float32"
    return [
        ((*path, "precision"), message)
        for path, training, role in trained
        if training.precision == "fp16" and not recipe.resources.of(role).gpus_per_worker
    ]


def _stage_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    kind = (*where, "objective", "kind")
    faults: list[tuple[KeyPath, str]] = [
        (kind, message) for message in _signal_faults(recipe, stage.objective)
    ]
    faults += _layer_faults(recipe, stage.objective, (*where, "objective"))
    decoders = {"teachers": recipe.teachers.decoder, "student": recipe.student.decoder}
    if stage.objective.maxent_only and "crf" in decoders.values():
        got = ", ".join(f"{section}: {decoder}" for section, decoder in decoders.items())
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
    return faults + [((*where, "training", name), f"{name} {hint}") for name in OF_THE_RUN if name in own]


def _schedule_faults(recipe: Recipe, stage: Stage, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Learning rates that need an end, and held-out losses that change from epoch to epoch."""
    resolved = resolved_stage(stage, recipe, unlabelled=recipe.corpus.has_text)
    training = {**recipe.training.model_dump(mode="json"), **resolved["training"]}
    faults = [
        ((*where, "schedule"), message)
        for message in _endless_faults(resolved["schedule"], training, "schedule")
    ]
    weighed = stage_objective(stage, unlabelled=recipe.corpus.has_text)
    if stage.select == "loss" and weighed.follows_lambda and resolved["schedule"]["anneal_rate"]:
        message = (
            "the loss has other weights in each epoch (λ falls), so that epochs cannot be compared by it"
        )
        faults.append(((*where, "select"), f"{message}; set schedule.anneal_rate: 0, or select: dev"))
    return faults


def _endless_faults(schedule: Mapping[str, Any], training: Mapping[str, Any], name: str) -> list[str]:
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


def _signal_faults(recipe: Recipe, objective: Any) -> list[str]:
    """The signals that an objective or the student's decoder reads and the teacher does not offer."""
    needs = list(objective.needs)
    if objective.reads_pairs and recipe.student.decoder == "crf":
        needs.append(Need("pairs"))
    lacking = missing(needs, recipe.teachers.offers)
    if not lacking:
        return []
    if recipe.teachers.kind == "none":
        return [
            f"{objective.kind!r} learns from a teacher, and there is none; set teachers, or objective: {{kind: gold}}"
        ]
    unmet = [need.signal for need in needs if missing([need], recipe.teachers.offers)]
    hints = [_HINTS[signal] for signal in unmet if signal in _HINTS]
    if not missing(needs, recipe.teachers.own_signals):
        hints.append("or set teachers.combine: scores")
    hint = "".join(f"; {hint}" for hint in dict.fromkeys(hints))
    return [f"{lacking} (teacher {recipe.teachers.kind!r}){hint}"]


def _layer_faults(recipe: Recipe, objective: Objective, where: KeyPath) -> list[tuple[KeyPath, str]]:
    """Layers that an objective reads and that the teacher's or the student's encoder does not have; of a mix, those of
    its parts."""
    if isinstance(objective, Mix):
        own = enumerate(objective.parts)
        return [
            fault
            for place, part in own
            for fault in _layer_faults(recipe, part.objective, (*where, "parts", place, "objective"))
        ]
    teacher = [need.layer for need in objective.needs if need.layer is not None]
    inside = objective.piece_layers + objective.attention_layers
    if inside and recipe.student.kind not in OPEN:
        message = f"{objective.kind!r} reads every piece of a Transformers encoder, which student"
        hint = f"set student.kind: {' or '.join(OPEN)}, or use 'representation'"
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


def _task_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """What a task's labels exclude: spans without span tags, transitions where there is one label."""
    task, faults = recipe.labels, []
    if recipe.corpus.unit != task.unit:
        message = f"source {recipe.corpus.source!r} has one label per {recipe.corpus.unit}"
        hint = (
            "set task: classification"
            if recipe.corpus.unit == "sentence"
            else "use source: tsv, or set columns.text"
        )
        faults.append(
            (("task",), f"{message}, and task {recipe.task!r} predicts one per {task.unit}; {hint}")
        )
    elif recipe.corpus.pairs != task.pairs:
        faults.append(_pair_fault(recipe))
    if task.pairs and recipe.teachers.kind == "hf_token_classifier":
        message = "it reads one text at a time, and a pair has two; use 'hf_sequence_classifier'"
        faults.append((("teachers", "kind"), message))
    if recipe.teachers.decoder == "spans" and not task.form.bioes:
        message = f"{recipe.teachers.kind!r} finds spans, and the tags of task {recipe.task!r} are {task.form.scheme}"
        faults.append((("teachers", "kind"), f"{message}; use 'bilstm_crf' or 'bilstm_maxent'"))
    if recipe.teachers.kind == "hf_sequence_classifier" and task.unit != "sentence":
        message = f"it labels sentences, and task {recipe.task!r} labels words; use 'hf_token_classifier'"
        faults.append((("teachers", "kind"), message))
    faults += [*_tree_faults(recipe), *_utterance_faults(recipe)]
    if task.unit == "sentence":
        alone = "one label per sentence has no transitions"
        if recipe.teachers.decoder == "crf":
            faults.append((("teachers", "kind"), f"{alone}; use 'bilstm_maxent'"))
        if recipe.student.decoder == "crf":
            faults.append((("student", "decoder"), f"{alone}; set student.decoder: maxent"))
    return faults


def _utterance_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Intents and slots, or trees of them, without a source that has them, and the other way round."""
    schemes = {recipe.corpus.scheme_of(language) for language in recipe.corpus.languages}
    wanted, source = recipe.labels.form.scheme, f"source {recipe.corpus.source!r}"
    if wanted == "parse":
        if schemes & {"parse", "utterance"}:
            return []
        message = f"{source} has no trees of intents and slots, which task {recipe.task!r} predicts"
        return [(("corpus", "source"), f"{message}; set corpus.source to {' or '.join((*PARSERS, 'mtop'))}")]
    if "parse" in schemes:
        message = f"{source} has trees of intents and slots, which task {recipe.task!r} does not predict"
        return [(("task",), f"{message}; set task: semantic_parsing")]
    given = "utterance" in schemes
    if given == (wanted == "utterance"):
        return []
    if given:
        message = f"{source} has intents and slots, which task {recipe.task!r} does not predict"
        return [(("task",), f"{message}; set task: intent_slots, or semantic_parsing")]
    message = f"{source} has no intents, which task {recipe.task!r} predicts"
    return [(("corpus", "source"), f"{message}; set corpus.source to {' or '.join(PARSERS)}")]


def _pair_fault(recipe: Recipe) -> tuple[KeyPath, str]:
    if recipe.corpus.pairs:
        message = f"corpus.columns.second names pairs of texts, and task {recipe.task!r} labels single ones"
        return ("task",), f"{message}; set task: pairs"
    message = f"task {recipe.task!r} labels pairs of texts, and the corpus has single ones"
    return ("task",), f"{message}; set corpus.columns.second, or task: classification"


def _tree_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Trees without a parser that teaches them, and parsers without trees."""
    trees, parser = recipe.labels.form.reads_heads, recipe.teachers.decoder == "arcs"
    if not trees:
        message = (
            f"{recipe.teachers.kind!r} parses, and task {recipe.task!r} predicts no trees; set task: parsing"
        )
        return [(("task",), message)] if parser else []
    faults: list[tuple[KeyPath, str]] = []
    if not parser:
        message = f"{recipe.teachers.kind!r} gives no trees, which task {recipe.task!r} predicts"
        faults.append((("teachers", "kind"), f"{message}; use 'biaffine_parser' or 'second_order_parser'"))
    if recipe.student.decoder == "crf":
        message = "a parser's labels are too many for transitions between them"
        faults.append((("student", "decoder"), f"{message}; set student.decoder: maxent"))
    if getattr(recipe.corpus, "tag", "tree") != "tree":
        message = f"task {recipe.task!r} predicts trees; set corpus.tag: tree"
        faults.append((("corpus", "tag"), message))
    return faults + _pos_faults(recipe)


def _pos_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Parts of speech that labels name and unlabelled text lacks; gold ones that a score needs and a model replaces."""
    corpus: Any = recipe.corpus
    asked, faults = predicted_pos_of(corpus), []
    forms = getattr(corpus, "unlabelled_form", "same")
    bare = set(forms.values() if isinstance(forms, dict) else [forms]) - {"same"}
    if asked is None and bare and recipe.student.encoding in READ_POS:
        message = (
            f"its labels name parts of speech, which text as {' or '.join(sorted(bare))} lacks; set "
            "corpus.predicted_pos.model, or student.encoding: relative_position"
        )
        faults.append((("student", "encoding"), message))
    if asked is not None and asked.replace and recipe.task == "parsing_without_punct":
        message = (
            "leaves out words by their gold part of speech, which corpus.predicted_pos.replace: true replaces; set "
            "task: parsing_without_punctuation_words, or replace: false"
        )
        faults.append((("task",), message))
    return faults


def _language_model_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Language models without a student or a vocabulary that can be one, and the other way round."""
    pretrains, kind = recipe.labels.form.hides_pieces, recipe.student.kind
    if not pretrains and recipe.teachers.kind == "hf_masked_lm":
        message = f"'hf_masked_lm' predicts pieces, and task {recipe.task!r} predicts labels"
        return [(("teachers", "kind"), f"{message}; set task: masked_lm, or another kind of teacher")]
    if not pretrains:
        message = f"{kind!r} is a masked language model, and task {recipe.task!r} predicts labels"
        hint = (
            "set task: masked_lm, or student.kind: pretrained with the path of what raykd export wrote of one"
        )
        return [(("student", "kind"), f"{message}; {hint}")] if kind in LANGUAGE_MODELS else []
    faults: list[tuple[KeyPath, str]] = []
    if kind not in LANGUAGE_MODELS:
        message = f"{kind!r} is no masked language model; set student.kind: {' or '.join(LANGUAGE_MODELS)}"
        faults.append((("student", "kind"), message))
    elif recipe.student.tokenizer.kind not in ("bert", "roberta", "pretrained", "teacher"):
        message = f"a {recipe.student.tokenizer.kind!r} vocabulary has no piece that masks others"
        faults.append(
            (("student", "vocabulary"), f"{message}; set kind: bert, roberta, pretrained or teacher")
        )
    taught = any(stage_objective(stage, unlabelled=False).needs for stage in recipe.all_stages)
    if taught and recipe.teachers.kind != "none" and recipe.student.tokenizer.kind in ("bert", "roberta"):
        message = "the teacher reads each batch in the training step, and has pieces of its own"
        faults.append((("student", "vocabulary"), f"{message}; set student.vocabulary: {{kind: teacher}}"))
    if recipe.corpus.has_text:
        name = "unlabelled_languages" if recipe.corpus.unlabelled_languages else "unlabelled"
        hint = "name its languages in corpus.languages" if "_" in name else "name its files in corpus.train"
        message = f"pretraining needs no labels, so that all text is training text; {hint}, and omit this"
        faults.append((("corpus", name), message))
    if recipe.teachers.kind not in ("none", "hf_masked_lm"):
        message = f"{recipe.teachers.kind!r} predicts no pieces; set teachers.kind: hf_masked_lm, or none"
        faults.append((("teachers", "kind"), message))
    return faults


def _generation_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Trees that are generated step by step without a student that does it, and the other way round."""
    generates, seq2seq = recipe.labels.form.generates, recipe.student.kind == "seq2seq"
    if not generates:
        message = f"generates trees of intents and slots, and task {recipe.task!r} predicts none"
        hint = "set task: semantic_parsing, or "
        kinds = (
            ("student", "seq2seq", seq2seq, "transformer"),
            ("teachers", "hf_seq2seq", recipe.teachers.kind == "hf_seq2seq", "bilstm_maxent"),
        )
        return [
            ((section, "kind"), f"{name!r} {message}; {hint}{section}.kind: {other}")
            for section, name, given, other in kinds
            if given
        ]
    faults: list[tuple[KeyPath, str]] = []
    if not seq2seq:
        message = f"{recipe.student.kind!r} generates no trees; set student.kind: seq2seq"
        faults.append((("student", "kind"), message))
    if recipe.teachers.kind not in ("none", "hf_seq2seq"):
        message = f"{recipe.teachers.kind!r} generates no trees; set teachers.kind: hf_seq2seq, or none"
        faults.append((("teachers", "kind"), message))
    if recipe.corpus.has_text:
        name = "unlabelled_languages" if recipe.corpus.unlabelled_languages else "unlabelled"
        message = (
            "a teacher reads the steps of gold trees, so that text without trees teaches nothing; omit it"
        )
        hint = ", or name the languages in zero_shot_languages" if name == "unlabelled_languages" else ""
        faults.append((("corpus", name), message + hint))
    return faults


def _language_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    faults: list[tuple[KeyPath, str]] = []
    unlabelled = recipe.corpus.unlabelled_languages
    if recipe.teachers.scope == "language" and unlabelled:
        problem = f"no teacher can be trained for {', '.join(unlabelled)} without labels"
        hint = "set teachers.scope: all, or remove them from corpus.unlabelled_languages"
        faults.append((("teachers", "scope"), f"{problem}; {hint}"))
    targets = (*unlabelled, *recipe.corpus.zero_shot_languages)
    if recipe.scoped_student.scope == "language" and targets:
        problem = f"no student can be selected for {', '.join(targets)} without labels"
        section = "strategy" if recipe.strategy is not None and recipe.strategy.scope else "student"
        faults.append(((section, "scope"), f"{problem}; set student.scope: all"))
    return faults


def _teacher_corpus_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    own, faults = recipe.teacher_corpus, []
    if own is None:
        return []
    if not recipe.teachers.trained:
        faults.append((("teacher_corpus",), "the teacher is taken as it is; omit teacher_corpus"))
    if recipe.corpus.split is not None and own.cap != "same":
        # Another cap would draw other sentences for dev and test, and train on some of the student's.
        hint = "name dev and test instead of corpus.split, which draws them from the capped sentences"
        faults.append((("teacher_corpus", "cap"), hint))
    return faults
