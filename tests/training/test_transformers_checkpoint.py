"""A fine-tuned teacher as a checkpoint of Transformers: by itself, and as the teacher of other sweeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from raykd.corpora.pretrained import HFVocabulary
from raykd.storage.store import Storage
from raykd.training.data import encoded_part
from raykd.training.load import load_tagger
from raykd.training.prepare import prepare
from raykd.training.transformers_checkpoint import export_checkpoint
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import executed, recipe, train_teachers


@pytest.fixture(scope="module", params=["whole", "pruned"])
def exported(request, tmp_path_factory):
    """The store of a fine-tuned teacher, its run, and the folder of its checkpoint."""
    place = tmp_path_factory.mktemp("teacher")
    teachers = {
        "kind": "hf_token_classifier",
        "path": make_checkpoint(place / "checkpoint"),
        "fine_tune": True,
    }
    run_recipe = recipe(teachers={**teachers, "vocabulary": request.param, "epochs": 1})
    ready = prepare(run_recipe, Storage(str(place / "store")))
    train_teachers(ready)
    run = ready.teachers[0].run
    export_checkpoint(ready.storage.child(*run.folder), Storage(str(place / "out")))
    return ready, run, place / "out"


def test_transformers_reads_the_same_labels(exported):
    ready, run, folder = exported
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    assert model.config.id2label == dict(enumerate(tagger.tag_set.tags))
    part = encoded_part(ready.storage.uri, run, "dev").text
    batch = part.gather(np.array([0]))
    # Its words are cut into windows where they are longer than it reads.
    assert int(batch.piece_lengths_B[0]) <= model.config.max_position_embeddings
    with torch.inference_mode():
        logits_PL = model(input_ids=batch.pieces_BP).logits[0]
        emissions_TY = tagger.model.eval()(batch).distribution.emissions_BTY[0]
    torch.testing.assert_close(logits_PL[batch.first_BT[0]].log_softmax(-1), emissions_TY)


def test_its_tokenizer_puts_the_same_pieces_around_a_text_and_between_two(exported):
    ready, run, folder = exported
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    words = ["abc", "bad", "fig"]
    batch_of_raykd = tagger.vocabulary.encode([words]).gather(np.array([0]))
    read = AutoTokenizer.from_pretrained(folder)(words, is_split_into_words=True, return_tensors="pt")
    assert torch.equal(read["input_ids"], batch_of_raykd.pieces_BP)
    assert HFVocabulary.load(str(folder)).special == tagger.vocabulary.pieces.special


def test_it_teaches_as_it_is(exported, tmp_path):
    ready, run, folder = exported
    as_it_is = recipe(teachers={"kind": "hf_token_classifier", "path": str(folder)})
    second_preparation = prepare(as_it_is, Storage(str(tmp_path / "store")))
    result = executed(second_preparation, second_preparation.teachers[0].run)
    before = executed(ready, run)
    for part in ("dev", "test"):
        assert result.scores.get(part).by_language == before.scores.get(part).by_language
