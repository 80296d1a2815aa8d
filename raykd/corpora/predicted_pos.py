"""Parts of speech predicted by a model, for the unlabelled text of a treebank or for all sentences.

The model is an export of a student of task `pos`. Running it is the business of `deploy/`: readers of a corpus pass
the function that opens it, `raykd.deploy.pos_models.open_pos_model`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from raykd.corpora.source import Pattern, SourceConfig, for_language
from raykd.errors import CorpusError
from raykd.forms.tree.codes import extend_with_upos
from raykd.spec import Frozen
from raykd.storage.digests import check_sha256, path_sha256
from raykd.storage.layout import CARD, LABELS, ONNX, VOCABULARY, WEIGHTS

TASK = "pos"
MODEL_FILES = (ONNX, LABELS, VOCABULARY, WEIGHTS)
"""Files of an export on which the predictions depend."""
HINT = "set corpus.predicted_pos.model to a folder that raykd export wrote of a student of task pos"
Counts = dict[str, dict[str, int]]
"""Part → language → number."""


class PosModel(Protocol):
    """An opened model of parts of speech."""

    labels: tuple[str, ...]
    """Parts of speech that it may predict."""

    def label(self, sentences: Sequence[Sequence[str]], /) -> list[list[str]]:
        """Return the parts of speech of the words of the sentences."""
        ...


OpenPosModel = Callable[[str], PosModel]
"""From the folder of an export to its model. Raises CorpusError for an unusable model."""


def refuse_model(folder: str) -> PosModel:
    """Raise CorpusError: the caller gave no function that opens models.

    Args:
        folder: Folder of the export.

    Raises:
        CorpusError: Always.
    """
    hint = "pass open_model=raykd.deploy.pos_models.open_pos_model to what reads the corpus"
    raise CorpusError(
        folder, None, "the corpus names a model of parts of speech, but no function opens it", hint
    )


class PredictedPos(Frozen):
    """Parts of speech predicted by a model."""

    model: Pattern
    """Folder of a model: an export of a student of task `pos`. Use `{lang}` in the name, or a mapping from languages,
    for one model per language."""
    replace: bool = False
    """`false`: predict for sentences without parts of speech in the files. `true`: predict for all sentences, as a
    deployed parser gets no others."""

    def folder(self, language: str) -> str | None:
        """Return the folder of the model for a language; None without one."""
        name = for_language(self.model, language)
        return None if name is None else name.replace("{lang}", language)

    def folders(self, languages: Iterable[str]) -> dict[str, str]:
        """Return the folders of the models, by language."""
        return {language: folder for language in languages if (folder := self.folder(language)) is not None}

    def describe(self) -> str:
        """Return the names of the models, as in the sweep file."""
        return self.model if isinstance(self.model, str) else ", ".join(dict.fromkeys(self.model.values()))


def predicted_pos_config(config: SourceConfig) -> PredictedPos | None:
    """Return the settings of predicted parts of speech; None where a corpus has those of its files.

    Args:
        config: Settings of the corpus.
    """
    return getattr(config, "predicted_pos", None)


def model_checksums(config: SourceConfig) -> list[str]:
    """Return the checksums of the models in the settings, as stated in their exports; empty without models.

    Args:
        config: Settings of the corpus.

    Raises:
        CorpusError: A folder has no export of a model of parts of speech.
    """
    settings = predicted_pos_config(config)
    folders = {} if settings is None else settings.folders(config.languages)
    return [sha256 for folder in folders.values() for sha256 in _checksums(folder).values()]


class PosTaggers:
    """The models for a treebank's languages, and counts of their agreement with the treebank.

    Attributes:
        replace: True if predictions replace parts of speech of the files.
        predicted: Sentences with predicted parts of speech.
        compared: Words with both a predicted part of speech and one of the treebank.
        agreeing: Words among these for which both are the same.
    """

    def __init__(self, settings: PredictedPos, languages: Iterable[str], open_model: OpenPosModel):
        self._folders = folders = settings.folders(languages)
        opened = {folder: _open_checked(folder, open_model) for folder in dict.fromkeys(folders.values())}
        self.replace = settings.replace
        self._models = {language: opened[folder] for language, folder in folders.items()}
        self.predicted: Counts = {}
        self.compared: Counts = {}
        self.agreeing: Counts = {}

    @classmethod
    def from_config(cls, config: SourceConfig, open_model: OpenPosModel) -> PosTaggers | None:
        """Open the models in the settings of a corpus; None without any.

        Args:
            config: Settings of the corpus.
            open_model: Function from the folder of an export to its model.

        Raises:
            CorpusError: A folder is missing, damaged, or contains a model of another task.
        """
        settings = predicted_pos_config(config)
        return None if settings is None else cls(settings, config.languages, open_model)

    def names(self, treebank_pos: Collection[str]) -> set[str]:
        """Return the parts of speech predicted by the models.

        Args:
            treebank_pos: Parts of speech of the treebank. A model may also predict those that `extend_with_upos`
                adds.

        Raises:
            CorpusError: A model may predict an unknown part of speech.
        """
        allowed = extend_with_upos(treebank_pos)
        for language, model in self._models.items():
            if treebank_pos and (unknown := sorted(set(model.labels).difference(allowed))):
                some = ", ".join(map(repr, unknown[:5])) + (", …" if len(unknown) > 5 else "")
                problem = f"it predicts {some}, and the treebank has {', '.join(sorted(treebank_pos)[:20])}"
                hint = "set corpus.pos to the column of the model's training, or corpus.predicted_pos.model to another"
                raise CorpusError(self._folders[language], None, problem, f"{hint} model")
        return {label for model in self._models.values() for label in model.labels}

    def filled(
        self, batches: Iterable[pa.RecordBatch], part: str, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Fill predicted parts of speech into the sentences of a part.

        Args:
            batches: Sentences of the part.
            part: Name of the part.
            names: Parts of speech in the order of their numbers.

        Yields:
            The batches with the column `pos` filled.
        """
        for tally in (self.predicted, self.compared, self.agreeing):
            tally[part] = dict.fromkeys(self._models, 0)
        numbers = {name: number for number, name in enumerate(names)}
        for batch in batches:
            place = batch.schema.get_field_index("pos")
            rows = self._filled(batch.select(["tokens", "language", "pos"]).to_pylist(), part, numbers)
            yield batch.set_column(
                place, batch.schema.field(place), pa.array(rows, batch.schema.field(place).type)
            )

    def _filled(
        self, rows: list[dict[str, Any]], part: str, numbers: Mapping[str, int]
    ) -> list[list[int] | None]:
        pos_rows = [row["pos"] for row in rows]
        for language, model in self._models.items():
            places = [place for place, row in enumerate(rows) if row["language"] == language]
            labels = model.label([rows[place]["tokens"] for place in places])
            for place, names in zip(places, labels, strict=True):
                predicted, gold = [numbers[name] for name in names], pos_rows[place]
                if gold is not None:
                    self.compared[part][language] += len(gold)
                    self.agreeing[part][language] += sum(map(int.__eq__, gold, predicted))
                if gold is None or self.replace:
                    self.predicted[part][language] += 1
                    pos_rows[place] = predicted
        return pos_rows


def _checksums(folder: str) -> dict[str, str]:
    """Checksums of the files in `MODEL_FILES`, as stated in the card of an export."""
    try:
        card = json.loads((Path(folder) / CARD).read_text(encoding="utf-8"))
        task, checksums = card["task"], {name: card["files"][name]["sha256"] for name in MODEL_FILES}
    except OSError:
        problem = f"there is no exported model: it has no {CARD}"
        raise CorpusError(folder, None, problem, HINT) from None
    except (ValueError, KeyError, TypeError) as error:
        problem = f"{CARD} is damaged ({error})"
        raise CorpusError(folder, None, problem, "export the model again") from None
    if task != TASK:
        raise CorpusError(folder, None, f"it has a model of task {task!r}, not of {TASK!r}", HINT)
    return checksums


def _open_checked(folder: str, open_model: OpenPosModel) -> PosModel:
    for name, sha256 in _checksums(folder).items():
        try:
            check_sha256(path_sha256(Path(folder) / name), sha256)
        except OSError:
            problem = f"it has no {name}"
            raise CorpusError(
                folder, None, problem, "copy the whole folder that raykd export wrote"
            ) from None
        except ValueError as error:
            raise CorpusError(folder, None, f"{name} is damaged: {error}", "copy the folder again") from None
    return open_model(folder)
