"""Parts of speech of a treebank that a model predicts: of unlabelled text, or of all sentences.

The model is what `raykd export` wrote of a student of task `pos`. Running it is the business of `deploy/`: who reads a
corpus passes the function that opens it, `raykd.deploy.pos_models.open_pos_model`.
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
"""The files of a model that decide what it predicts."""
HINT = "set corpus.predicted_pos.model to a folder that raykd export wrote of a student of task pos"
Counts = dict[str, dict[str, int]]
"""Part → language → number."""


class PosModel(Protocol):
    """An opened model of parts of speech."""

    labels: tuple[str, ...]
    """The parts of speech that it may predict."""

    def label(self, sentences: Sequence[Sequence[str]], /) -> list[list[str]]:
        """The part of speech of every word of each sentence."""
        ...


OpenPosModel = Callable[[str], PosModel]
"""From the folder of an export to the model in it. It raises CorpusError where the model cannot be used."""


def refuse_model(folder: str) -> PosModel:
    """Raise CorpusError: the caller gave no function that opens models."""
    hint = "pass open_model=raykd.deploy.pos_models.open_pos_model to what reads the corpus"
    raise CorpusError(folder, None, "a model of parts of speech, and nothing here opens it", hint)


class PredictedPos(Frozen):
    """Parts of speech that a model predicts."""

    model: Pattern
    """The folder that `raykd export` wrote of a student of task `pos`; with `{lang}`, or as a mapping from languages,
    where each has a model of its own."""
    replace: bool = False
    """`false`: for sentences whose parts of speech the files do not have. `true`: for all sentences, as a deployed
    parser gets no others."""

    def folder(self, language: str) -> str | None:
        """The model of a language; None where it has none."""
        name = for_language(self.model, language)
        return None if name is None else name.replace("{lang}", language)

    def folders(self, languages: Iterable[str]) -> dict[str, str]:
        """Language → its model."""
        return {language: folder for language in languages if (folder := self.folder(language)) is not None}

    def describe(self) -> str:
        """The models, as the file names them."""
        return self.model if isinstance(self.model, str) else ", ".join(dict.fromkeys(self.model.values()))


def predicted_pos_config(config: SourceConfig) -> PredictedPos | None:
    """What a corpus asks for; None where its parts of speech are the files' own."""
    return getattr(config, "predicted_pos", None)


def model_checksums(config: SourceConfig) -> list[str]:
    """The checksums of the models that `config` names, as their exports state them; none where there are no models.

    Raises:
        CorpusError: a folder has no export of a model of parts of speech.
    """
    asked = predicted_pos_config(config)
    folders = {} if asked is None else asked.folders(config.languages)
    return [sha256 for folder in folders.values() for sha256 in _checksums(folder).values()]


class PosTaggers:
    """The models of a treebank's languages, and how often they and the treebank agree."""

    def __init__(self, asked: PredictedPos, languages: Iterable[str], open_model: OpenPosModel):
        self._folders = folders = asked.folders(languages)
        opened = {folder: _open_checked(folder, open_model) for folder in dict.fromkeys(folders.values())}
        self.replace = asked.replace
        self._models = {language: opened[folder] for language, folder in folders.items()}
        self.predicted: Counts = {}
        """Sentences that have predicted parts of speech."""
        self.compared: Counts = {}
        """Words that have a part of speech in the treebank, of which the model predicted one too."""
        self.agreeing: Counts = {}
        """Those of them with the same one."""

    @classmethod
    def from_config(cls, config: SourceConfig, open_model: OpenPosModel) -> PosTaggers | None:
        """The models that `config` asks for, opened by `open_model`; None where it asks for none.

        Raises:
            CorpusError: a folder is missing, damaged, or has a model of another task.
        """
        asked = predicted_pos_config(config)
        return None if asked is None else cls(asked, config.languages, open_model)

    def names(self, known: Collection[str]) -> set[str]:
        """What the models may predict.

        Args:
            known: the parts of speech of the treebank. A model may have the others that `with_universal` adds.

        Raises:
            CorpusError: a model's labels are no parts of speech of the treebank.
        """
        allowed = extend_with_upos(known)
        for language, model in self._models.items():
            if known and (others := sorted(set(model.labels).difference(allowed))):
                some = ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else "")
                problem = f"it predicts {some}, and the treebank has {', '.join(sorted(known)[:20])}"
                hint = "set corpus.pos to the column that it learnt from, or corpus.predicted_pos.model to another"
                raise CorpusError(self._folders[language], None, problem, f"{hint} model")
        return {label for model in self._models.values() for label in model.labels}

    def filled(
        self, batches: Iterable[pa.RecordBatch], part: str, names: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """The same sentences of a part with predicted parts of speech, as numbers in `names`."""
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
        found = [row["pos"] for row in rows]
        for language, model in self._models.items():
            own = [place for place, row in enumerate(rows) if row["language"] == language]
            labels = model.label([rows[place]["tokens"] for place in own])
            for place, names in zip(own, labels, strict=True):
                predicted, gold = [numbers[name] for name in names], found[place]
                if gold is not None:
                    self.compared[part][language] += len(gold)
                    self.agreeing[part][language] += sum(map(int.__eq__, gold, predicted))
                if gold is None or self.replace:
                    self.predicted[part][language] += 1
                    found[place] = predicted
        return found


def _checksums(folder: str) -> dict[str, str]:
    """The checksum of each file that decides what the model in `folder` predicts, as its export states it."""
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
