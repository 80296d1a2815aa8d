"""An exported model in the form of Transformers' pipelines, without Transformers; `raykd.pipeline` makes one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from raykd.serving.labeller import Labelled, LabellerError, joined, load, model_file

Strategy = Literal["none", "simple"]
Pair = Mapping[str, str]
TASKS = {
    "token-classification": "word", "ner": "word", "text-classification": "sentence", "sentiment-analysis": "sentence"
}  # fmt: skip
"""Name of a pipeline → what gets a label."""


class Pipeline:
    """Call it with a text, or with texts; see `raykd.pipeline`."""

    def __init__(
        self,
        task: str,
        model: str | Path,
        *,
        aggregation_strategy: Strategy = "none",
        int8: bool = False,
        threads: int = 1,
        batch_size: int = 32,
    ):
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r} ({', '.join(TASKS)})")
        if aggregation_strategy not in ("none", "simple"):
            raise ValueError(f"unknown aggregation_strategy {aggregation_strategy!r} (none, simple)")
        self.task, self.batch_size = task, batch_size
        self.labeller = load(model, file=model_file(int8=int8), threads=threads)
        if self.labeller.trees is not None:
            problem = f"{model}: the model parses, and Transformers has no pipeline of trees"
            raise LabellerError(f"{problem}; use raykd.load({str(model)!r}).parse")
        if TASKS[task] != self.labeller.unit:
            fitting = next(name for name, unit in TASKS.items() if unit == self.labeller.unit)
            problem = f"{model}: the model gives one label for each {self.labeller.unit}"
            raise LabellerError(f"{problem}, which {task!r} does not; use {fitting!r}")
        self._form = _of_text
        if self.labeller.unit == "word":
            spans = aggregation_strategy == "simple" and self.labeller.has_spans
            self._form = {"none": _of_words, "simple": _of_spans if spans else _of_groups}[
                aggregation_strategy
            ]

    def __call__(self, inputs: str | Pair | Iterable[str | Pair]) -> Any:
        """A list of dictionaries for a text; for texts a list of these lists (of token classification) or of the
        dictionaries (of text classification). Words without a label (O) are left out. A pair of texts is a dictionary
        with `text` and `text_pair`."""
        given: Any = [inputs] if isinstance(inputs, str | Mapping) else inputs
        texts = (text if isinstance(text, str) else _joined(text) for text in given)
        found = [self._form(said) for said in self.labeller(texts, batch=self.batch_size)]
        if self.labeller.unit == "word":
            return found[0] if isinstance(inputs, str) else found
        return [entry for own in found for entry in own]


def _joined(pair: Pair) -> str:
    return joined(pair["text"], pair["text_pair"])


def _of_words(said: Labelled) -> list[dict[str, Any]]:
    return [
        {
            "entity": word.label, "score": word.probability, "index": number, "word": word.text,
            "start": word.start, "end": word.end,
        }
        for number, word in enumerate(said.words, start=1)
        if word.label != "O"
    ]  # fmt: skip


def _of_spans(said: Labelled) -> list[dict[str, Any]]:
    return [_group(span) for span in said.spans]


def _of_groups(said: Labelled) -> list[dict[str, Any]]:
    """Of a task whose labels are of single words: each word is a group."""
    return [_group(word) for word in said.words if word.label != "O"]


def _group(span: Any) -> dict[str, Any]:
    return {
        "entity_group": span.label, "score": span.probability, "word": span.text, "start": span.start,
        "end": span.end,
    }  # fmt: skip


def _of_text(said: Labelled) -> list[dict[str, Any]]:
    return [{"label": said.label, "score": said.probability}]
