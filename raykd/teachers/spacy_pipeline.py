"""A spaCy pipeline as a teacher: its entities, its tags, or its trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib.machinery import PathFinder
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from typing_extensions import override

from raykd.corpora.answers import AskedText
from raykd.corpora.answers.answer_records import HEADS, TREES
from raykd.corpora.answers.files import files_checksum
from raykd.corpora.source import DEFAULT, Pattern
from raykd.errors import MissingError
from raykd.identity import PlainObject
from raykd.teachers.asked_annotator import AnnotatorSource, AskedAnnotator, Labeller

META = "meta.json"
"""A file that every pipeline has."""


class SpacyTeacher(AskedAnnotator):
    """A spaCy pipeline, by the name of its package or by its folder; it must exist on all nodes.

    Entities are found in the raw text, with spaCy's own words; tags and trees are of the words of the corpus.
    """

    kind: Literal["spacy"] = "spacy"
    path: Pattern
    """The pipeline: `en_core_web_sm`, a folder, or a mapping from languages."""
    answers: Literal["spans", "labels", "trees"] = "spans"
    """`spans`: its entities; `labels`: a tag for each word; `trees`: the heads and relations of its parser."""
    tags: Literal["pos", "tag"] = "pos"
    """Tags for `answers: labels`: `pos`, universal parts of speech, or `tag`, the tags of the language."""
    batch_size: int = Field(default=256, ge=1)
    """Texts that are put to it at once, and stored in one object."""

    @property
    @override
    def title(self) -> str:
        return f"{self.kind} {self.path}" if isinstance(self.path, str) else self.kind

    @property
    def _paths(self) -> dict[str, str]:
        """Language, or `default` → pipeline."""
        return self.path if isinstance(self.path, dict) else {DEFAULT: self.path}

    @property
    @override
    def asking(self) -> PlainObject:
        checksums = {language: _checksum(pipeline_folder(path)) for language, path in self._paths.items()}
        return {"pipelines": checksums, "answers": self.answers, "tags": self.tags}

    @override
    def refuse_unreadable(self, languages: Sequence[str]) -> None:
        for path in self._paths.values():
            pipeline_folder(path)

    @override
    def find_source(self, folders: Sequence[Path]) -> AnnotatorSource:
        return AnnotatorSource(", ".join(str(pipeline_folder(path)) for path in self._paths.values()))

    @override
    def open(self, source: AnnotatorSource) -> Labeller:
        import spacy

        pipelines = {language: pipeline_folder(path) for language, path in self._paths.items()}
        load = cache(spacy.load)

        def label(texts: Sequence[AskedText]) -> Iterator[Any]:
            for language, group in groupby(texts, attrgetter("language")):
                folder = pipelines.get(language, pipelines.get(DEFAULT))
                if folder is None:
                    raise ImportError(f"teachers.path names no pipeline for {language}")
                yield from self._answers(load(folder), list(group))

        return label

    def _answers(self, pipeline: Any, texts: Sequence[AskedText]) -> Iterator[Any]:
        if self.answers == "spans":
            for doc in _annotated(pipeline, (item.text for item in texts), "ENT_IOB", "entities"):
                yield [
                    {"start": span.start_char, "end": span.end_char, "label": span.label_}
                    for span in doc.ents
                ]
            return
        from spacy.tokens import Doc

        docs = (Doc(pipeline.vocab, words=list(item.words)) for item in texts)
        if self.answers == TREES:
            for doc in _annotated(pipeline, docs, "DEP", "trees"):
                yield {
                    HEADS: [0 if token.head == token else token.head.i + 1 for token in doc],
                    "labels": [token.dep_ for token in doc],
                }
            return
        tag: Callable[[Any], str] = attrgetter(f"{self.tags}_")
        for doc in _annotated(pipeline, docs, self.tags.upper(), self.tags):
            yield [tag(token) for token in doc]


def _annotated(pipeline: Any, texts: Iterable[Any], attribute: str, name: str) -> Iterator[Any]:
    """Yield spaCy's documents, all of which have an attribute: without its component nothing would be labelled."""
    for doc in pipeline.pipe(texts):
        if len(doc) and not doc.has_annotation(attribute):
            parts = ", ".join(pipeline.pipe_names)
            raise ImportError(f"the pipeline gives no {name} (its components: {parts})")
        yield doc


def pipeline_folder(path: str) -> Path:
    """Return the folder of a pipeline, without importing it.

    Args:
        path: Name of its package, or its folder.

    Raises:
        MissingError: There is no such pipeline.
    """
    if (Path(path) / META).is_file():
        return Path(path)
    package = PathFinder.find_spec(path) if path.isidentifier() else None
    for place in (package.submodule_search_locations or ()) if package else ():
        # The package holds one folder with the version in its name.
        if metas := sorted(Path(place).glob(f"{path}-*/{META}")):
            return metas[-1].parent
    hint = "install its package (python -m spacy download NAME), or correct teachers.path"
    raise MissingError(path, "is no folder of a spaCy pipeline, and no installed package with one", hint)


def _checksum(folder: Path) -> str:
    return files_checksum([str(file) for file in sorted(folder.rglob("*")) if file.is_file()])
