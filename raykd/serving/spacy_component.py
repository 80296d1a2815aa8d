"""An exported model as a component of spaCy: `nlp.add_pipe("raykd", config={"model": "student"})`.

The words are spaCy's own tokens. Span tasks set `doc.ents`; labels of words `token.tag_`, and `token.pos_` where all
labels are universal parts of speech; labels of whole texts `doc.cats`. Where sentences are set (by `sentencizer`,
`senter` or a parser before it), the model reads sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from raykd.serving.labeller import load, model_file, spans_of

UPOS = frozenset((
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
))  # fmt: skip


@Language.factory(
    "raykd",
    default_config={"int8": False, "threads": 1},
    assigns=["doc.ents", "token.tag", "token.pos", "doc.cats"],
)
def make(nlp: Language, name: str, model: str, int8: bool, threads: int) -> Component:
    """The component of the exported model in the folder `model`; the pipeline's configuration keeps its path."""
    return Component(model, int8=int8, threads=threads)


class Component:
    """Labels documents; `make` is how spaCy gets one."""

    def __init__(self, model: str, *, int8: bool = False, threads: int = 1):
        self.labeller = load(model, file=model_file(int8=int8), threads=threads)
        self._universal = set(self.labeller.labels) <= UPOS

    def __call__(self, doc: Doc) -> Doc:
        self._set([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 32) -> Iterator[Doc]:
        """Documents in their order, `batch_size` of them labelled together."""
        for docs in minibatch(stream, batch_size):
            self._set(docs)
            yield from docs

    def _set(self, docs: Sequence[Doc]) -> None:
        if self.labeller.unit == "sentence":
            self._set_cats(docs)
            return
        parts = [part for doc in docs for part in _sentences(doc)]
        tokens = [[token for token in part if not token.is_space] for part in parts]
        tokens = [own for own in tokens if own]
        labels = self.labeller.label([_words(own) for own in tokens])
        if self.labeller.has_spans:
            ents: dict[Doc, list[Span]] = {doc: [] for doc in docs}
            for own, given in zip(tokens, labels, strict=True):
                doc = own[0].doc
                for first, last, label in spans_of(given):
                    ents[doc].append(Span(doc, own[first].i, own[last].i + 1, label))
            for doc, found in ents.items():
                doc.set_ents(found)
            return
        for own, given in zip(tokens, labels, strict=True):
            for token, label in zip(own, given, strict=True):
                token.tag_ = label
                if self._universal:
                    token.pos_ = label

    def _set_cats(self, docs: Sequence[Doc]) -> None:
        tokens = [[token for token in doc if not token.is_space] for doc in docs]
        found = iter(self.labeller.probabilities([_words(own) for own in tokens if own]))
        for doc, own in zip(docs, tokens, strict=True):
            if own:
                doc.cats = dict(zip(self.labeller.labels, next(found)[0].tolist(), strict=True))


def _sentences(doc: Doc) -> Iterable[Any]:
    return doc.sents if doc.has_annotation("SENT_START") else [doc]


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]
