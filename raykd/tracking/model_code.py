"""A student as MLflow loads it: this file is copied into the model and run there ("models from code"), without raykd.

`artifacts/student` is what `raykd export` wrote: one folder, or one for each language that has a student of its own.
Nothing imports this module: running it sets the model.
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
    """Labels texts: a data frame with a column `text`, or a list of strings. One that parses is given sentences: lists
    of words in a column `tokens` and, where it reads them, their parts of speech in a column `pos`.
    """

    def load_context(self, context: PythonModelContext) -> None:
        """Read the files; `model_config` says which of `model.onnx` and `model-int8.onnx`, and how many threads."""
        folder, config = Path(context.artifacts["student"]), context.model_config or {}
        own = [folder] if (folder / "export.json").is_file() else sorted(folder.iterdir())
        self.several = own != [folder]
        self.labellers = {each.name: _load(each)(each, **config) for each in own}
        first, *_ = self.labellers.values()
        self.parses, self.needs_pos = first.trees is not None, first.needs_pos

    # The type of the input is for MLflow, which warns where there is none.
    def predict(
        self, context: PythonModelContext, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> list[dict[str, Any]]:
        """For each text an object with `text`, `words` and `spans`, or with `text`, `label` and `probability`: what
        `raykd predict` writes. Of a parser `words` have relations as labels, and `heads` are beside them.
        """
        if self.parses:
            texts = _sentences(model_input, needs_pos=self.needs_pos, several=self.several)
        else:
            texts = _texts(model_input, several=self.several)
        if not self.several:
            (labeller,) = self.labellers.values()
            return [_plain(said) for said in labeller(texts)]
        languages = [str(language) for language in model_input[LANGUAGE]]
        if unknown := sorted(set(languages) - set(self.labellers)):
            raise ValueError(
                f"no student for {', '.join(unknown)}; languages are {', '.join(self.labellers)}"
            )
        found: list[dict[str, Any]] = [{}] * len(texts)
        for language, labeller in self.labellers.items():
            rows = [row for row, own in enumerate(languages) if own == language]
            for row, said in zip(rows, labeller(texts[row] for row in rows), strict=True):
                found[row] = _plain(said)
        return found


def _texts(given: pandas.DataFrame | list[str], *, several: bool) -> list[str]:
    columns = list(getattr(given, "columns", [TEXT]))
    if TEXT not in columns and (several or len(columns) != 1 or isinstance(columns[0], str)):
        raise ValueError(f"give a data frame with a column {TEXT!r}; it has {columns}")
    texts: list[str] = list(
        given if isinstance(given, list) else given[TEXT if TEXT in columns else columns[0]]
    )
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"row {row}: a text is a string, got {text!r}")
    return texts


def _sentences(given: pandas.DataFrame, *, needs_pos: bool, several: bool) -> Sentences:
    wanted = [TOKENS, *([POS] if needs_pos else []), *([LANGUAGE] if several else [])]
    columns = list(getattr(given, "columns", []))
    if missing := [name for name in wanted if name not in columns]:
        problem = f"the model parses: give a data frame with the columns {', '.join(wanted)}"
        raise ValueError(f"{problem}; {', '.join(missing)} is missing")
    words = [list(map(str, own)) for own in given[TOKENS]]
    if not needs_pos:
        return words
    pos = [list(map(str, own)) for own in given[POS]]
    for row, (one, other) in enumerate(zip(words, pos, strict=True)):
        if len(one) != len(other):
            raise ValueError(f"row {row}: {len(one)} words and {len(other)} parts of speech")
    return [list(zip(*each, strict=True)) for each in zip(words, pos, strict=True)]


def _load(folder: Path) -> Callable[..., Any]:
    """`load` of the package `labeller` that lies beside the model: another model's may be of another version."""
    name, file = f"labeller_{uuid4().hex}", folder / "labeller/__init__.py"
    spec = importlib.util.spec_from_file_location(name, file)  # of an `__init__.py` a package
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its modules import each other by this name
    spec.loader.exec_module(module)
    return module.load


def _plain(said: Any) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(said).items() if value is not None}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


set_model(Student())
