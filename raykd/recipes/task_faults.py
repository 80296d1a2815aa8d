"""Faults between a task and corpus, teachers and student: label forms, units, vocabularies, parts of speech."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from raykd.corpora import SOURCES
from raykd.corpora.answers.answer_records import TREES
from raykd.corpora.predicted_pos import predicted_pos_config
from raykd.corpora.text import TextSource
from raykd.forms import FLAT, PIECES, SPANS, STEPS, TREE, UTTERANCES, LabelForm
from raykd.forms.tree.codes import READ_POS
from raykd.layers.model_config import ModelConfig
from raykd.recipes.recipe import Recipe, stage_objective
from raykd.spec import KeyPath
from raykd.students import STUDENTS
from raykd.teachers import TEACHERS, AnswerTeacher

Faults = list[tuple[KeyPath, str]]
TABLES: Mapping[str, Mapping[str, type[ModelConfig]]] = MappingProxyType(
    {"teachers": {name: kind for name, kind in TEACHERS.items() if kind.model_signals}, "student": STUDENTS}
)
"""Section → the models that it may have."""
_GENERATES = "{kind!r} generates no trees; set {section}.kind: {kinds}"
_GENERATED = (
    "{kind!r} generates trees of intents and slots, and task {task!r} predicts none; set task: semantic_parsing, or "
    "{section}.kind: "
)
_MASKED = "and task {task!r} predicts labels; set task: masked_lm, or "
FORM_NOT_PREDICTED: Mapping[tuple[str, LabelForm], str] = MappingProxyType(
    {
        ("teachers", TREE): "{kind!r} gives no trees, which task {task!r} predicts; use {quoted}",
        ("teachers", PIECES): "{kind!r} predicts no pieces; set teachers.kind: {kinds}, or none",
        ("student", PIECES): "{kind!r} is no masked language model; set student.kind: {kinds}",
        ("teachers", STEPS): f"{_GENERATES}, or none",
        ("student", STEPS): _GENERATES,
    }
)
"""Section, and label form of the task → message for a model that does not predict this form."""
OTHER_FORM_PREDICTED: Mapping[tuple[str, LabelForm], str] = MappingProxyType(
    {
        ("teachers", SPANS): (
            "{kind!r} finds spans, and the tags of task {task!r} are {scheme}; use 'bilstm_crf' or 'bilstm_maxent'"
        ),
        ("teachers", TREE): "{kind!r} parses, and task {task!r} predicts no trees; set task: parsing",
        ("teachers", PIECES): f"{{kind!r}} predicts pieces, {_MASKED}another kind of teacher",
        ("student", PIECES): (
            f"{{kind!r}} is a masked language model, {_MASKED}student.kind: pretrained with the path "
            "of what raykd export wrote of one"
        ),
        ("teachers", STEPS): f"{_GENERATED}bilstm_maxent",
        ("student", STEPS): f"{_GENERATED}transformer",
    }
)
"""Section, and the only label form that the model predicts → message for a task with another form."""


def task_faults(recipe: Recipe) -> Faults:
    """Return (key path, message) for each mismatch between the task and the corpus, the teachers or the student."""
    faults = [
        *_corpus_faults(recipe),
        *_gold_faults(recipe),
        *_answer_faults(recipe),
        *_unit_faults(recipe),
        *_transition_faults(recipe),
    ]
    for section in TABLES:
        faults += _form_faults(recipe, section)
    if recipe.task_entry.form == TREE:
        faults += _pos_faults(recipe)
    if recipe.task_entry.form == PIECES:
        faults += _vocabulary_faults(recipe)
    return faults + _unlabelled_faults(recipe)


def _corpus_faults(recipe: Recipe) -> Faults:
    """Corpora with labels of the wrong form or unit for the task, or with pairs of texts where the task has none."""
    task, corpus, faults = recipe.task_entry, recipe.corpus, []
    if corpus.unit != task.unit and not corpus.annotator_labels:
        message = f"source {corpus.source!r} has one label per {corpus.unit}"
        hint = (
            "set task: classification"
            if corpus.unit == "sentence"
            else "use source: tsv, or set columns.text"
        )
        faults.append(
            (("task",), f"{message}, and task {recipe.task!r} predicts one per {task.unit}; {hint}")
        )
    elif corpus.pairs != task.reads_pairs:
        faults.append(_pair_fault(recipe))
    if task.form == TREE and corpus.leaves_out_trees:
        message = f"task {recipe.task!r} predicts trees; set corpus.tag: tree"
        faults.append((("corpus", "tag"), message))
    return faults if task.form in corpus.forms else [*faults, _utterance_fault(recipe)]


def _gold_faults(recipe: Recipe) -> Faults:
    """Text without labels, and settings that need gold labels where an annotator's own stand in for them."""
    task, corpus = recipe.task_entry, recipe.corpus
    if task.form == PIECES:
        return [(("corpus", "labels"), "pretraining needs no labels")] if corpus.annotator_labels else []
    if not corpus.annotator_labels:
        if not isinstance(corpus, TextSource):
            return []
        hint = "name those that your annotator gives in corpus.labels, or read labelled files"
        return [
            (("corpus", "source"), f"source 'text' has no labels, which task {recipe.task!r} needs; {hint}")
        ]
    faults = list[tuple[KeyPath, str]]()
    if not recipe.teachers.gives_answers:
        message = "corpus.labels: without gold labels the teacher must be an annotator"
        faults.append((("teachers", "kind"), f"{message}; use 'annotations', 'python' or 'spacy'"))
    if not task.form.labels_text or task.form not in (FLAT, SPANS):
        faults.append((("task",), f"task {recipe.task!r} has no annotators; leave out corpus.labels"))
    return faults


def _answer_faults(recipe: Recipe) -> Faults:
    """Annotators that give trees where the task has none, or other labels where it has trees."""
    is_parsing = recipe.task_entry.form == TREE
    annotators = recipe.teachers.annotators if isinstance(recipe.teachers, AnswerTeacher) else ()
    if all((annotator.answers == TREES) == is_parsing for annotator in annotators):
        return []
    hint = "set teachers.answers: trees" if is_parsing else "set task: parsing, or other teachers.answers"
    predicts = "predicts trees" if is_parsing else "predicts no trees"
    return [(("teachers", "answers"), f"task {recipe.task!r} {predicts}; {hint}")]


def _pair_fault(recipe: Recipe) -> tuple[KeyPath, str]:
    if recipe.corpus.pairs:
        message = f"corpus.columns.second names pairs of texts, and task {recipe.task!r} labels single ones"
        return ("task",), f"{message}; set task: pairs"
    message = f"task {recipe.task!r} labels pairs of texts, and the corpus has single ones"
    return ("task",), f"{message}; set corpus.columns.second, or task: classification"


def _utterance_fault(recipe: Recipe) -> tuple[KeyPath, str]:
    """Return the fault of a task and a source of which only one has intents and slots, or trees of them."""
    form_names = {STEPS: "trees of intents and slots", UTTERANCES: "intents and slots"}
    source, corpus_form = f"source {recipe.corpus.source!r}", recipe.corpus.forms[0]
    if corpus_form in form_names:
        tasks = {STEPS: "semantic_parsing", UTTERANCES: "intent_slots, or semantic_parsing"}
        message = f"{source} has {form_names[corpus_form]}, which task {recipe.task!r} does not predict"
        return ("task",), f"{message}; set task: {tasks[corpus_form]}"
    task_form = recipe.task_entry.form
    missing = {**form_names, UTTERANCES: "intents"}[task_form]
    sources = " or ".join(name for name, kind in SOURCES.items() if task_form in kind.forms)
    message = f"{source} has no {missing}, which task {recipe.task!r} predicts"
    return ("corpus", "source"), f"{message}; set corpus.source to {sources}"


def _unit_faults(recipe: Recipe) -> Faults:
    """Teachers with the wrong unit for the task, or for single texts where the task has pairs."""
    task, path, faults = recipe.task_entry, ("teachers", "kind"), []
    if task.reads_pairs and not recipe.teachers.reads_text_pairs:
        message = "it reads one text at a time, and a pair has two; use 'hf_sequence_classifier'"
        faults.append((path, message))
    if task.unit not in recipe.teachers.units:
        message = f"it labels sentences, and task {recipe.task!r} labels words; use 'hf_token_classifier'"
        faults.append((path, message))
    return faults


def _form_faults(recipe: Recipe, section: str) -> Faults:
    """The label form of the teachers, or of the student, if it is not the task's."""
    model, task = getattr(recipe, section), recipe.task_entry
    if task.form in model.forms:
        return []
    kinds = [name for name, kind in TABLES[section].items() if task.form in kind.forms]
    values = {
        "kind": model.kind, "task": recipe.task, "section": section, "scheme": task.form.scheme,
        "kinds": " or ".join(kinds), "quoted": " or ".join(map(repr, kinds)),
    }  # fmt: skip
    faults: Faults = []
    if message := FORM_NOT_PREDICTED.get((section, task.form)):
        faults.append(((section, "kind"), message.format(**values)))
    model_form = model.forms[0]
    if len(model.forms) == 1 and (message := OTHER_FORM_PREDICTED.get((section, model_form))):
        path: KeyPath = ("task",) if model_form == TREE else (section, "kind")
        faults.append((path, message.format(**values)))
    return faults


def _transition_faults(recipe: Recipe) -> Faults:
    """Decoders with transitions between labels, if a sentence has one label, or a parser has too many labels."""
    task, faults = recipe.task_entry, []
    if task.unit == "sentence":
        problem = "one label per sentence has no transitions"
        if recipe.teachers.has_transitions:
            faults.append((("teachers", "kind"), f"{problem}; use 'bilstm_maxent'"))
        if recipe.student.has_transitions:
            faults.append((("student", "decoder"), f"{problem}; set student.decoder: maxent"))
    if task.form == TREE and recipe.student.has_transitions:
        message = "a parser's labels are too many for transitions between them"
        faults.append((("student", "decoder"), f"{message}; set student.decoder: maxent"))
    return faults


def _vocabulary_faults(recipe: Recipe) -> Faults:
    """Vocabularies of masked language models without a mask piece, or with other pieces than the teacher's."""
    pieces, path, faults = recipe.student.tokenizer, ("student", "vocabulary"), []
    if PIECES in recipe.student.forms and not pieces.has_mask:
        message = f"a {pieces.kind!r} vocabulary has no mask piece"
        faults.append((path, f"{message}; set kind: bert, roberta, pretrained or teacher"))
    taught = any(stage_objective(stage, unlabelled=False).needs for stage in recipe.all_stages)
    if taught and recipe.teachers.offers and pieces.as_sampled:
        message = (
            "the teacher reads each batch in the training step, and its pieces differ from the student's"
        )
        faults.append((path, f"{message}; set student.vocabulary: {{kind: teacher}}"))
    return faults


def _unlabelled_faults(recipe: Recipe) -> Faults:
    """Unlabelled text without effect: pretraining uses all text anyway, and generated trees need gold ones."""
    if not recipe.corpus.has_text:
        return []
    languages = bool(recipe.corpus.unlabelled_languages)
    path: KeyPath = ("corpus", "unlabelled_languages" if languages else "unlabelled")
    if recipe.task_entry.form == PIECES:
        hint = "name its languages in corpus.languages" if languages else "name its files in corpus.train"
        message = "pretraining needs no labels, so that all text is training text"
        return [(path, f"{message}; {hint}, and omit this")]
    if recipe.task_entry.form == STEPS:
        hint = ", or name the languages in zero_shot_languages" if languages else ""
        message = "a teacher reads the steps of gold trees, so that text without trees teaches nothing"
        return [(path, f"{message}; omit it{hint}")]
    return []


def _pos_faults(recipe: Recipe) -> list[tuple[KeyPath, str]]:
    """Parts of speech missing from unlabelled text, or replaced by predicted ones although a score needs gold ones."""
    corpus: Any = recipe.corpus
    predicted_pos, faults = predicted_pos_config(corpus), []
    forms = getattr(corpus, "unlabelled_form", "same")
    bare = set(forms.values() if isinstance(forms, dict) else [forms]) - {"same"}
    if predicted_pos is None and bare and recipe.student.encoding in READ_POS:
        message = (
            f"its labels name parts of speech, which text as {' or '.join(sorted(bare))} lacks; set "
            "corpus.predicted_pos.model, or student.encoding: relative_position"
        )
        faults.append((("student", "encoding"), message))
    if predicted_pos is not None and predicted_pos.replace and recipe.task_entry.pos:
        message = (
            "leaves out words by their gold part of speech, which corpus.predicted_pos.replace: true replaces; set "
            "task: parsing_without_punctuation_words, or replace: false"
        )
        faults.append((("task",), message))
    return faults
