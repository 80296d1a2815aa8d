"""An exported model as a component of spaCy: `nlp.add_pipe("raykd", config={"model": "student"})`.

The words are spaCy's own tokens. Span tasks set `doc.ents`; labels of words `token.tag_`, and `token.pos_` where all
labels are universal parts of speech; labels of whole texts `doc.cats`. Where sentences are set (by `sentencizer`,
`senter` or a parser before it), the model reads sentence by sentence. Trees are `token.head` and `token.dep_`; a parser
whose labels name parts of speech reads `token.pos_` (or `token.tag_`, where it learnt from those of a treebank of its
own), or those that another exported model gives: `"pos": "tagger"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from raykd.serving.labeller import UPOS, LabellerError, load, model_file, spans_of


@Language.factory(
    "raykd",
    default_config={"int8": False, "threads": 1, "pos": None},
    assigns=["doc.ents", "token.tag", "token.pos", "doc.cats", "token.head", "token.dep"],
)
def make(nlp: Language, name: str, model: str, int8: bool, threads: int, pos: str | None) -> Component:
    """The component of the exported model in the folder `model`, of a parser with that of parts of speech in `pos`; the
    pipeline's configuration keeps their paths."""
    return Component(model, int8=int8, threads=threads, pos=pos)


class Component:
    """Labels documents; `make` is how spaCy gets one."""

    def __init__(self, model: str, *, int8: bool = False, threads: int = 1, pos: str | None = None):
        self.labeller = load(model, file=model_file(int8=int8), threads=threads, pos=pos)
        if self.labeller.pairs:
            problem = f"{model}: the model labels pairs of texts, and a document of spaCy is one"
            raise LabellerError(f"{problem}; use raykd.load({model!r})")
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
        parts: list[Any] = []
        for doc in docs:
            parts += doc.sents if doc.has_annotation("SENT_START") else [doc]
        tokens = [[token for token in part if not token.is_space] for part in parts]
        tokens = [own for own in tokens if own]
        if self.labeller.trees is not None:
            self._set_trees(docs, tokens)
            return
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

    def _set_trees(self, docs: Sequence[Doc], tokens: Sequence[Sequence[Token]]) -> None:
        """Heads and relations; a root is its own head, and white space hangs on the word before it."""
        pos = [self._pos(own) for own in tokens] if self.labeller.needs_pos else None
        heads: dict[Doc, list[int]] = {doc: [] for doc in docs}
        relations: dict[Doc, list[str]] = {}
        for doc in docs:
            words = [token.i for token in doc if not token.is_space]
            first = words[0] if words else 0
            heads[doc] = [max((word for word in words if word < token.i), default=first) for token in doc]
            relations[doc] = ["dep"] * len(doc)  # what spaCy's own parsers call that of white space
        for own, tree in zip(tokens, self.labeller.parse([_words(own) for own in tokens], pos), strict=True):
            doc = own[0].doc
            for token, (head, relation) in zip(own, tree, strict=True):
                heads[doc][token.i] = own[head - 1].i if head else token.i
                relations[doc][token.i] = relation if head else "ROOT"
        for doc in docs:
            given = [(head - place) % 2**64 for place, head in enumerate(heads[doc])]
            names = [doc.vocab.strings.add(name) for name in relations[doc]]
            values: Any = np.array([given, names], np.uint64).T.reshape(-1, 2)
            doc.from_array(["HEAD", "DEP"], values)

    def _pos(self, tokens: Sequence[Token]) -> list[str]:
        universal = self.labeller.card["trees"]["pos"] == "upos"
        found = [token.pos_ if universal else token.tag_ for token in tokens]
        if missing := [token.text for token, own in zip(tokens, found, strict=True) if not own]:
            problem = f"{missing[0]!r} has no part of speech, which the model reads"
            hint = 'set them by a component before it, or config={"pos": DIR}, an export of a student of task pos'
            raise ValueError(f"{problem}; {hint}")
        return found

    def _set_cats(self, docs: Sequence[Doc]) -> None:
        tokens = [[token for token in doc if not token.is_space] for doc in docs]
        found = iter(self.labeller.probabilities([_words(own) for own in tokens if own]))
        for doc, own in zip(docs, tokens, strict=True):
            if own:
                doc.cats = dict(zip(self.labeller.labels, next(found)[0].tolist(), strict=True))


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]
