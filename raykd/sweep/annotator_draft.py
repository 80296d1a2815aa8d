"""The first sweep file for texts and the answers of an annotator, without gold labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob

from raykd.corpora.answers.detection import AnswerFiles
from raykd.errors import CorpusError
from raykd.identity import PlainObject
from raykd.sweep.draft_lines import commented_line, flow_yaml, opening_comment, sweep_name

MOST_TEXTS = 5
EPOCHS = 12


def teachers_section(answers: AnswerFiles) -> PlainObject:
    """Return the section `teachers` for files of answers.

    Args:
        answers: The files.
    """
    return {"kind": "annotations", "path": _pattern(answers.names), "answers": answers.form}


def draft_annotated(folder: str, texts: Sequence[str], answers: AnswerFiles, file: str) -> str:
    """Return the text of a sweep file that distils students from answers about texts.

    Args:
        folder: The folder of the corpus.
        texts: Names of its files of plain text.
        answers: Its files of answers.
        file: The name of the sweep file in the commands of its comments.

    Raises:
        CorpusError: There are several files of text, which may be several languages or parts.
    """
    if len(texts) > 1:
        problem = f"there are several files of text beside the answers: {', '.join(texts[:MOST_TEXTS])}"
        hint = "put them into one file, or write the section corpus by hand (docs/ANNOTATORS.md)"
        raise CorpusError(folder, None, problem, hint)
    name = sweep_name(folder)
    teachers = teachers_section(answers)
    objectives = ["{kind: top_wk}", "{kind: posterior}"]
    if answers.form == "probabilities":
        objectives = ["{kind: posterior}", "{kind: token}"]
    lines = [
        opening_comment(folder, file, name),
        f"name: {flow_yaml(name)}",
        commented_line("task: ner", "or aspect, pos, classification: what the labels are"),
        "corpus:",
        "  source: text",
        f"  root: {flow_yaml(folder)}",
        commented_line("  languages: [und]", "not determined: write the code of yours"),
        f"  train: {flow_yaml(texts[0])}",
        commented_line(f"  labels: {flow_yaml(answers.labels)}", "the labels that students shall give"),
        commented_line("  split: {train: 8, dev: 1, test: 1}", "dev and test get the teacher's own labels"),
        "teachers:",
        *(f"  {key}: {flow_yaml(value)}" for key, value in teachers.items()),
        commented_line('  # labels: {PERSON: PER, "*": O}', "its labels by other names; O is none"),
        "student:                                    # small and fast; every {choice: …} is searched",
        "  kind: bilstm",
        "  embedding_dim: {choice: [32, 64]}",
        "  hidden_dim: {choice: [64, 128]}",
        f"  decoder: {'maxent' if answers.form == 'probabilities' else 'crf'}",
        f"objective: {{choice: [{', '.join(objectives)}]}}",
        f"schedule: {{epochs: {EPOCHS}}}",
        "training: {optimiser: adam, learning_rate: 5e-3, batch_tokens: 1000}",
        "search:",
        "  trials: 6",
        commented_line(
            "  objectives: {agreement: max, latency_ms: min}", "there are no gold labels, so no F1"
        ),
        commented_line("store: .raykd", "what is computed; the same work is done once"),
        commented_line(
            "tracking: {uri: sqlite:///mlflow.db}", "mlflow ui --backend-store-uri sqlite:///mlflow.db"
        ),
        "variants:",
        "  small:                                    # raykd sweep … --small: does it all work?",
        "    corpus: {cap: 1000}",
        "    schedule: {epochs: 3}",
        "    search: {trials: 2}",
        "    teachers_must_learn: false",
    ]
    return "\n".join(lines) + "\n"


def _pattern(names: Sequence[str]) -> str:
    """One path, or a pattern that has exactly these files."""
    if len(names) == 1:
        return names[0]
    folder, ending = (
        os.path.commonpath([os.path.dirname(name) for name in names]),
        os.path.splitext(names[0])[1],
    )
    pattern = os.path.join(folder, f"*{ending}")
    if sorted(glob(pattern)) == sorted(names):
        return pattern
    raise CorpusError(
        names[0], None, "files of answers have no pattern in common", "put them alone into one folder"
    )
