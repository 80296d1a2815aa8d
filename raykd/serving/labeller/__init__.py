"""An exported model as a labeller of text.

This folder also lies beside every exported model. It needs onnxruntime and numpy, and nothing of raykd.

    from labeller import load            # in raykd: raykd.load(DIR)
    label = load("student")
    for span in label("Ada Lovelace lives in London.").spans:
        print(span.label, span.text, span.start, span.end, span.probability)

signs.py          text → the places of its words
words.py          texts and sentences → checked words with their places
normalization.py  words → parts, as tokenizers write them
pieces.py         words → pieces and characters → the numbers that a model reads
session.py        batches and windows → labels and scores, by ONNX Runtime
lattice.py        scores → probabilities, and the best labelling
spans.py          labels → spans, intent and slots
trees.py          labels → heads and relations
cascade.py        a model that is not sure → its teacher
folder.py         the files of an export
model.py          all of it together
"""

from __future__ import annotations

from .cascade import AWAY, CONFIDENCES, STUDENT, TEACHER, Answer, Ask, Cascade, confidence
from .folder import CARD, FLOAT32, INT8, LABELS, VOCABULARY, WEIGHTS, LabellerError, model_file
from .lattice import Chain, Lattice, best_path
from .model import READ_AHEAD, Labeller, load
from .normalization import UnsupportedError
from .pieces import Split, splitter, with_package
from .signs import NORMALIZATION, SIGNS, SPLITS, WHITESPACE, normalize_word, word_places, words_in
from .spans import INTENT, Labelled, Span, decode_spans
from .trees import UPOS, Arc, TreeLabels, best_tree, is_tree
from .words import SEPARATOR, UTTERANCE, Text, check_pair, join_pair, refuse_no_texts

__all__ = [
    "AWAY",
    "CARD",
    "CONFIDENCES",
    "FLOAT32",
    "INT8",
    "INTENT",
    "LABELS",
    "NORMALIZATION",
    "READ_AHEAD",
    "SEPARATOR",
    "SIGNS",
    "SPLITS",
    "STUDENT",
    "TEACHER",
    "UPOS",
    "UTTERANCE",
    "VOCABULARY",
    "WEIGHTS",
    "WHITESPACE",
    "Answer",
    "Arc",
    "Ask",
    "Cascade",
    "Chain",
    "Labelled",
    "Labeller",
    "LabellerError",
    "Lattice",
    "Span",
    "Split",
    "Text",
    "TreeLabels",
    "UnsupportedError",
    "best_path",
    "best_tree",
    "check_pair",
    "confidence",
    "decode_spans",
    "is_tree",
    "join_pair",
    "load",
    "model_file",
    "normalize_word",
    "refuse_no_texts",
    "splitter",
    "with_package",
    "word_places",
    "words_in",
]  # fmt: skip
