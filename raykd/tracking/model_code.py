"""A student in the form of MLflow's "models from code". MLflow copies this file into the model and runs it there.

`artifacts/student` is the folder written by `raykd export`: one export, or one per language if each language has its
own student. Nothing here imports raykd, and nothing imports this module; running it sets the model.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import uuid4

import pandas
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext

TEXT, LANGUAGE = "text", "language"
TOKENS, POS = "tokens", "pos"
Sentences = list[list[str]] | list[list[tuple[str, str]]]
"""Words, or pairs of a word and its part of speech."""


class Student(PythonModel):
    """A labeller of texts: a data frame with a column `text`, or a list of strings.

    A parser reads sentences instead: lists of words in a column `tokens` and, if it needs them, their parts of speech
    in a column `pos`.
    """

    def load_context(self, context: PythonModelContext) -> None:
        """Load the exported labellers.

        Args:
            context: Its `model_config` names the file (`model.onnx` or `model-int8.onnx`) and the number of threads.
        """
        folder, config = Path(context.artifacts["student"]), context.model_config or {}
        folders = [folder] if (folder / "export.json").is_file() else sorted(folder.iterdir())
        self.per_language = folders != [folder]
        self.labellers = {export.name: _load(export)(export, **config) for export in folders}
        first, *_ = self.labellers.values()
        self.parses, self.needs_pos = first.trees is not None, first.needs_pos

    # MLflow warns if the input has no type annotation.
    def predict(
        self, context: PythonModelContext, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """Return one object per text, as `raykd predict` writes it.

        Args:
            context: Not used.
            model_input: Texts or sentences, see the class; with a column `language` if each language has its own
                student.
            params: Not used.

        Returns:
            `text`, `words` and `spans`, or `text`, `label` and `probability`. For a parser the labels of `words` are
            relations, and `heads` is added.
        """
        if self.parses:
            texts = _sentences(model_input, needs_pos=self.needs_pos, per_language=self.per_language)
        else:
            texts = _texts(model_input, per_language=self.per_language)
        if not self.per_language:
            (labeller,) = self.labellers.values()
            return [_plain(labels) for labels in labeller(texts)]
        languages = [str(language) for language in model_input[LANGUAGE]]
        if unknown := sorted(set(languages) - set(self.labellers)):
            raise ValueError(
                f"no student for {', '.join(unknown)}; languages are {', '.join(self.labellers)}"
            )
        outputs: list[dict[str, Any]] = [{}] * len(texts)
        for language, labeller in self.labellers.items():
            rows = [row for row, language_of_row in enumerate(languages) if language_of_row == language]
            for row, labels in zip(rows, labeller(texts[row] for row in rows), strict=True):
                outputs[row] = _plain(labels)
        return outputs


def _texts(model_input: pandas.DataFrame | list[str], *, per_language: bool) -> list[str]:
    columns = list(getattr(model_input, "columns", [TEXT]))
    if TEXT not in columns and (per_language or len(columns) != 1 or isinstance(columns[0], str)):
        raise ValueError(f"give a data frame with a column {TEXT!r}; it has {columns}")
    texts: list[str] = list(
        model_input if isinstance(model_input, list) else model_input[TEXT if TEXT in columns else columns[0]]
    )
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"row {row}: a text is a string, got {text!r}")
    return texts


def _sentences(model_input: pandas.DataFrame, *, needs_pos: bool, per_language: bool) -> Sentences:
    required = [TOKENS, *([POS] if needs_pos else []), *([LANGUAGE] if per_language else [])]
    columns = list(getattr(model_input, "columns", []))
    if missing := [name for name in required if name not in columns]:
        problem = f"the model parses: give a data frame with the columns {', '.join(required)}"
        raise ValueError(f"{problem}; {', '.join(missing)} is missing")
    words = [list(map(str, row)) for row in model_input[TOKENS]]
    if not needs_pos:
        return words
    pos = [list(map(str, row)) for row in model_input[POS]]
    for row, (words_of_row, pos_of_row) in enumerate(zip(words, pos, strict=True)):
        if len(words_of_row) != len(pos_of_row):
            raise ValueError(f"row {row}: {len(words_of_row)} words and {len(pos_of_row)} parts of speech")
    return [list(zip(*pair, strict=True)) for pair in zip(words, pos, strict=True)]


def _load(folder: Path) -> Callable[..., Any]:
    """Return `load` of the package `labeller` beside the model; another model may have another version."""
    name, file = f"labeller_{uuid4().hex}", folder / "labeller/__init__.py"
    spec = importlib.util.spec_from_file_location(name, file)  # a package, as the file is `__init__.py`
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its modules import each other by this name
    spec.loader.exec_module(module)
    return module.load


def _plain(labels: Any) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(labels).items() if value is not None}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


set_model(Student())
