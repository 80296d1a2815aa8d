"""A token classifier as an annotator: its answers are the token marginals of the same checkpoint as a model."""

import json

import pytest
import torch

from raykd.corpora.answers import AnswerReading, AskedText, LabelNames, answer_json, read_answer
from raykd.errors import StoreError
from raykd.forms import SPANS
from raykd.layers.answered_text import encode_answer
from raykd.layers.model_config import BuildInputs
from raykd.structures import token_marginals
from raykd.teachers import HFTokenClassifierTeacher
from raykd.teachers.checkpoint_annotator import CheckpointAnnotator
from tests.layers.batches import make_batch
from tests.teachers.checkpoints import make_checkpoint

NER = SPANS.tag_set(["LOC", "PER"])
SENTENCES = (("abc", "an", "zz", "jij"), ("bo",), ("an", "abcabc"))
BIOES = ("O", *(f"{letter}-{x}" for x in ("person", "place", "date") for letter in "BIES"))
IOB2 = ("O", *(f"{letter}-{x}" for x in ("person", "place", "date") for letter in "BI"))
NAMES = {"person": "PER", "place": "LOC"}


@pytest.mark.parametrize("labels", [BIOES, IOB2])
def test_answers_are_the_token_marginals_of_the_checkpoint(tmp_path, labels):
    path = make_checkpoint(tmp_path, labels=labels)
    annotator = CheckpointAnnotator(path=path)
    texts = [AskedText(words, " ".join(words), "en") for words in SENTENCES]
    values = list(annotator.open(annotator.find_source([]))(texts))
    tag_set = SPANS.tag_set(["person", "place", "date"])
    teacher = HFTokenClassifierTeacher(path=path)
    batch = make_batch(
        range(3), vocabulary=teacher.tokenizer.build(["a"]), characters=False, sentences=SENTENCES
    )
    with torch.no_grad():
        expected_BTY = token_marginals(teacher.build(BuildInputs(tag_set=tag_set)).eval()(batch).distribution)
    names = LabelNames.of(NER.labels, {**NAMES, "date": "O"})
    for b, (text, value) in enumerate(zip(texts, values, strict=True)):
        stored = json.loads(answer_json(value, text, "probabilities"))
        answer = read_answer(stored, text.words, AnswerReading(names, is_bioes=True))
        read_TY = encode_answer(answer, NER, names, bioes=True).log_probabilities_TY.exp()
        for tag in NER.tags:
            renamed = [
                y
                for y, name in enumerate(tag_set.tags)
                if name.replace("person", "PER").replace("place", "LOC") == tag
            ]
            renamed += [y for y, name in enumerate(tag_set.tags) if tag == "O" and name.endswith("date")]
            mass_T = expected_BTY[b, : len(text.words), renamed].sum(-1)
            torch.testing.assert_close(read_TY[:, NER.index(tag)], mass_T, rtol=1e-4, atol=1e-5)


def test_its_identity_is_that_of_weights_and_reading(tmp_path):
    first, second = (
        make_checkpoint(tmp_path / name, labels=BIOES, seed=seed) for name, seed in (("a", 0), ("b", 1))
    )
    answers = CheckpointAnnotator(path=first).pinned().answers_id
    assert (
        CheckpointAnnotator(path=first, labelled_pieces="every", batch_size=3).pinned().answers_id == answers
    )
    annotators = [
        CheckpointAnnotator(path=second),
        CheckpointAnnotator(path=first, labelled_pieces="first"),
        CheckpointAnnotator(path=first, operating_point={"background_to_start": 1}),
    ]
    assert answers not in {annotator.pinned().answers_id for annotator in annotators}


def test_a_checkpoint_without_a_head_is_refused_before_anything_runs(tmp_path):
    annotator = CheckpointAnnotator(path=make_checkpoint(tmp_path, head=False))
    for refuse in (annotator.refuse_unreadable, annotator.find_source):
        with pytest.raises(StoreError, match="has no trained head"):
            refuse([])
