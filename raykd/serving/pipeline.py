"""An exported model with the interface of Transformers' pipelines, without Transformers; see `raykd.pipeline`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from raykd.serving.labeller import Labelled, LabellerError, join_pair, load, model_file, refuse_no_texts

Strategy = Literal["none", "simple"]
Pair = Mapping[str, str]
TASKS = {
    "token-classification": "word", "ner": "word", "text-classification": "sentence", "sentiment-analysis": "sentence"
}  # fmt: skip
"""Name of a pipeline → the unit that gets a label."""


class Pipeline:
    """Labels one text or several; see `raykd.pipeline`."""

    def __init__(
        self,
        task: str,
        model: str | Path,
        *,
        aggregation_strategy: Strategy = "none",
        int8: bool = False,
        threads: int = 1,
        batch_size: int = 32,
        split: str | None = None,
        away: Literal["student", "error"] = "student",
        run_code: bool = False,
    ):
        if task not in TASKS:
            raise ValueError(f"unknown task {task!r} ({', '.join(TASKS)})")
        if aggregation_strategy in ("first", "average", "max"):
            problem = f"aggregation_strategy {aggregation_strategy!r} joins the labels of a word's pieces"
            raise ValueError(f"{problem}, but here each word has one label; use 'simple'")
        if aggregation_strategy not in ("none", "simple"):
            raise ValueError(f"unknown aggregation_strategy {aggregation_strategy!r} (none, simple)")
        self.task, self.batch_size, self.grouped = task, batch_size, aggregation_strategy == "simple"
        self.labeller = load(
            model, file=model_file(int8=int8), threads=threads, split=split, away=away, run_code=run_code
        )
        if self.labeller.trees is not None:
            problem = f"{model}: the model is a parser, and Transformers has no pipeline for trees"
            raise LabellerError(f"{problem}; use raykd.load({str(model)!r}).parse")
        if TASKS[task] != self.labeller.unit:
            fitting = next(name for name, unit in TASKS.items() if unit == self.labeller.unit)
            problem = f"{model}: the model gives one label for each {self.labeller.unit}"
            raise LabellerError(f"{problem}, which {task!r} does not; use {fitting!r}")

    def __call__(self, inputs: str | Pair | Iterable[str | Pair]) -> Any:
        """Label a text, or texts.

        Args:
            inputs: A text or an iterable of texts. A pair of texts is a dictionary with `text` and `text_pair`.

        Returns:
            For a text, a list of dictionaries. For texts, a list of these lists (token classification) or of
            dictionaries (text classification). Words without a label (O) are left out.
        """
        texts: Any = [inputs] if isinstance(inputs, str | Mapping) else inputs
        refuse_no_texts(texts)
        labelled = self.labeller(
            (_text(text, pairs=self.labeller.pairs) for text in texts), batch=self.batch_size
        )
        if self.labeller.unit == "sentence":
            return [
                {"label": result.label, "score": result.probability, **_given_by(result)}
                for result in labelled
            ]
        described = [self._grouped(result) if self.grouped else _word_entities(result) for result in labelled]
        return described[0] if isinstance(inputs, str) else described

    def _grouped(self, labelled: Labelled) -> list[dict[str, Any]]:
        """Return the spans; if labels are of single words, each labelled word is a group."""
        spans = (
            labelled.spans
            if self.labeller.has_spans
            else [word for word in labelled.words if word.label != "O"]
        )
        return [
            {
                "entity_group": span.label, "score": span.probability, "word": span.text, "start": span.start,
                "end": span.end, **_given_by(labelled),
            }
            for span in spans
        ]  # fmt: skip


def _text(text: Any, *, pairs: bool) -> Any:
    """Turn an input of Transformers' pipelines into a text for the labeller."""
    if not isinstance(text, Mapping):
        return text
    if "text_pair" in text and not pairs:
        raise ValueError(f"the model labels single texts, and {text!r} has a second one; leave text_pair out")
    if not isinstance(text.get("text"), str) or not isinstance(text.get("text_pair", ""), str):
        raise ValueError(f'a pair of texts is {{"text": "…", "text_pair": "…"}}, got {text!r}')
    return join_pair(text["text"], text["text_pair"]) if "text_pair" in text else text["text"]


def _given_by(labelled: Labelled) -> dict[str, str]:
    """Return the model of a cascade that answered; nothing for other models, as Transformers has no such entry."""
    return {} if labelled.given_by is None else {"given_by": labelled.given_by}


def _word_entities(labelled: Labelled) -> list[dict[str, Any]]:
    return [
        {
            "entity": word.label, "score": word.probability, "index": number, "word": word.text,
            "start": word.start, "end": word.end, **_given_by(labelled),
        }
        for number, word in enumerate(labelled.words, start=1)
        if word.label != "O"
    ]  # fmt: skip
