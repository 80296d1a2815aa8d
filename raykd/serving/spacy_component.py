"""An exported model as a component of spaCy: `nlp.add_pipe("raykd", config={"model": "student"})`.

The words are spaCy's tokens. With `"split": "whitespace"` (or `"signs"`) the labeller splits the text, and all tokens
of a word get its label. Span tasks add to `doc.ents`; entities of earlier components stay. Labels of words become
`token.tag_`, and `token.pos_` if all labels are universal parts of speech; labels of whole texts become `doc.cats`. If
sentences are set (by an earlier `sentencizer`, `senter` or parser), the model reads sentence by sentence. Trees become
`token.head` and `token.dep_`. A parser whose labels name parts of speech reads `token.pos_` (or `token.tag_`, if it was
trained on the treebank's parts of speech), or gets them from another exported model: `"pos": "tagger"`.

Of a cascade, `doc._.raykd_given_by` names the model that answered for each sentence; `"away": "error"` stops where its
teacher is away, and `"run_code": true` opens an annotator that is its teacher.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from raykd.serving.labeller import (
    UPOS,
    WHITESPACE,
    LabellerError,
    decode_spans,
    load,
    model_file,
    word_places,
    words_in,
)

BATCH = 32
"""Sentences that are read together."""
GIVEN_BY = "raykd_given_by"


@Language.factory(
    "raykd",
    default_config={
        "int8": False,
        "threads": 1,
        "pos": None,
        "split": None,
        "away": "student",
        "run_code": False,
    },
    assigns=["doc.ents", "token.tag", "token.pos", "doc.cats", "token.head", "token.dep"],
)
def make(
    nlp: Language,
    name: str,
    model: str,
    int8: bool,
    threads: int,
    pos: str | None,
    split: str | None,
    away: Literal["student", "error"],
    run_code: bool,
) -> Component:
    """Return the component of the exported model in the folder `model`; the pipeline's configuration keeps paths."""
    return Component(model, int8=int8, threads=threads, pos=pos, split=split, away=away, run_code=run_code)


class Component:
    """Labels documents; spaCy gets one from `make`."""

    def __init__(
        self,
        model: str,
        *,
        int8: bool = False,
        threads: int = 1,
        pos: str | None = None,
        split: str | None = None,
        away: Literal["student", "error"] = "student",
        run_code: bool = False,
    ):
        self._options = {"int8": int8, "threads": threads, "pos": pos, "split": split}
        self._options |= {"away": away, "run_code": run_code}
        self.labeller = load(
            model,
            file=model_file(int8=int8),
            threads=threads,
            pos=pos,
            split=split,
            away=away,
            run_code=run_code,
        )
        if not Doc.has_extension(GIVEN_BY):
            Doc.set_extension(GIVEN_BY, default=None)
        if self.labeller.pairs:
            problem = f"{model}: the model labels pairs of texts, and a document of spaCy is one"
            raise LabellerError(f"{problem}; use raykd.load({model!r})")
        if self.labeller.trees is not None and split is not None:
            raise LabellerError(f"{model}: a parser reads spaCy's own tokens; leave split out")
        self._split = split
        self._universal = set(self.labeller.labels) <= UPOS

    def __reduce__(self) -> tuple[Any, ...]:
        # Processes that spaCy starts open the files again.
        return partial(Component, **self._options), (str(self.labeller.folder),)

    def __call__(self, doc: Doc) -> Doc:
        """Label one document."""
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 32) -> Iterator[Doc]:
        """Label documents in order, `batch_size` of them together."""
        for docs in minibatch(stream, batch_size):
            self._annotate(docs)
            yield from docs

    def _annotate(self, docs: Sequence[Doc]) -> None:
        if self.labeller.unit == "sentence":
            self._set_cats(docs)
            return
        parts: list[Any] = []
        for doc in docs:
            parts += doc.sents if doc.has_annotation("SENT_START") else [doc]
        if self.labeller.trees is not None:
            self._set_trees(docs, [tokens for part in parts if (tokens := _visible(part))])
            return
        sentences = [words for part in parts if (words := self._words_of(part))]
        answers = self.labeller.answers([[text for text, _ in words] for words in sentences], BATCH)
        spans: dict[Doc, list[Span]] = {doc: [] for doc in docs}
        for words, answer in zip(sentences, answers, strict=True):
            doc, word_labels = words[0][1].doc, answer.best[int(self.labeller.utterances) :]
            if answer.given_by is not None:
                doc._.set(GIVEN_BY, (*(doc._.get(GIVEN_BY) or ()), answer.given_by))
            if self.labeller.has_spans:
                spans[doc] += [
                    Span(doc, words[first][1].start, words[last][1].end, label)
                    for first, last, label in decode_spans(word_labels)
                ]
            else:
                self._set_tags(words, word_labels)
        for doc, doc_spans in spans.items() if self.labeller.has_spans else ():
            _add_entities(doc, doc_spans)

    def _words_of(self, part: Any) -> list[tuple[str, Span]]:
        """Return the words of a document or a sentence, each with its tokens."""
        if self._split is None:
            return [(token.text, token.doc[token.i : token.i + 1]) for token in _visible(part)]
        start = part[0].idx if len(part) else 0
        places = word_places(part.text, self._split)
        tokens = [part.doc.char_span(start + a, start + b, alignment_mode="expand") for a, b in places]
        return [(part.text[a:b], word_tokens) for (a, b), word_tokens in zip(places, tokens, strict=True)]

    def _set_tags(self, words: Sequence[tuple[str, Span]], labels: Sequence[str]) -> None:
        # The last word first: a token that two words share has the label of the first.
        for (_, tokens), label in reversed([*zip(words, labels, strict=True)]):
            for token in tokens:
                token.tag_ = label
                if self._universal:
                    token.pos_ = label

    def _set_trees(self, docs: Sequence[Doc], tokens: Sequence[Sequence[Token]]) -> None:
        """Set heads and relations; a root is its own head, and an invisible token depends on the word before it."""
        pos = [self._pos(sentence) for sentence in tokens] if self.labeller.needs_pos else None
        heads: dict[Doc, list[int]] = {doc: [] for doc in docs}
        relations: dict[Doc, list[str]] = {}
        for doc in docs:
            words = [token.i for token in _visible(doc)]
            first = words[0] if words else 0
            heads[doc] = [max((word for word in words if word < token.i), default=first) for token in doc]
            relations[doc] = ["dep"] * len(doc)  # spaCy's parsers give white space this relation
        for sentence, tree in zip(
            tokens, self.labeller.parse([_words(sentence) for sentence in tokens], pos), strict=True
        ):
            doc = sentence[0].doc
            for token, (head, relation) in zip(sentence, tree, strict=True):
                heads[doc][token.i] = sentence[head - 1].i if head else token.i
                relations[doc][token.i] = relation if head else "ROOT"
        for doc in docs:
            offsets = [(head - place) % 2**64 for place, head in enumerate(heads[doc])]
            names = [doc.vocab.strings.add(name) for name in relations[doc]]
            values: Any = np.array([offsets, names], np.uint64).T.reshape(-1, 2)
            doc.from_array(["HEAD", "DEP"], values)

    def _pos(self, tokens: Sequence[Token]) -> list[str]:
        universal = self.labeller.card["trees"]["pos"] == "upos"
        pos = [token.pos_ if universal else token.tag_ for token in tokens]
        if missing := [token.text for token, name in zip(tokens, pos, strict=True) if not name]:
            problem = f"{missing[0]!r} has no part of speech, which the model reads"
            hint = 'set them by a component before it, or config={"pos": DIR}, an export of a student of task pos'
            raise ValueError(f"{problem}; {hint}")
        return pos

    def _set_cats(self, docs: Sequence[Doc]) -> None:
        # Texts are split as in training, not into spaCy's tokens.
        words = [words_in(doc.text, WHITESPACE) for doc in docs]
        probabilities = iter(self.labeller.probabilities(doc_words for doc_words in words if doc_words))
        for doc, doc_words in zip(docs, words, strict=True):
            if doc_words:
                doc.cats = dict(zip(self.labeller.labels, next(probabilities)[0].tolist(), strict=True))


def _words(tokens: Sequence[Token]) -> list[str]:
    return [token.text for token in tokens]


def _visible(part: Iterable[Token]) -> list[Token]:
    """Return the tokens of a document or a sentence without white space and invisible signs."""
    return [token for token in part if words_in(token.text, WHITESPACE)]


def _add_entities(doc: Doc, spans: Iterable[Span]) -> None:
    """Add entities without overlap with earlier components' entities, as spaCy's `ner` does."""
    # A beginning without a type is a token that a component has blocked.
    occupied = {token.i for token in doc if token.ent_type or token.ent_iob_ == "B"}
    added: list[Span] = []
    for span in spans:
        places = range(span.start, span.end)
        if occupied.isdisjoint(places):
            added.append(span)
            occupied.update(places)
    outside = [doc[token.i : token.i + 1] for token in doc if not token.ent_iob and token.i not in occupied]
    doc.set_ents(added, outside=outside, default="unmodified")
