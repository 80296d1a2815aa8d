"""Fine-tuned checkpoints: pruning, frozen parts, precision, and sentences of any length."""

from functools import partial

import pytest
import torch
from pydantic import ValidationError
from transformers import (
    AlbertConfig,
    AlbertForTokenClassification,
    AutoTokenizer,
    GPT2Config,
    GPT2ForTokenClassification,
)

from raykd.corpora.sentence import SEPARATOR
from raykd.deploy.onnx_files import Session, onnx_files
from raykd.errors import StoreError
from raykd.forms import FLAT, SPANS
from raykd.layers.model import load_weights, save_weights
from raykd.layers.model_config import BuildInputs
from raykd.structures import viterbi
from raykd.teachers import HFSequenceClassifierTeacher, HFTokenClassifierTeacher
from raykd.training.stages import select_trainable
from tests.layers.batches import make_batch
from tests.teachers.checkpoints import IOB2, PIECES, make_checkpoint

NER, CLASSES = SPANS.tag_set(["LOC", "PER"]), FLAT.tag_set(["bad", "good"])
SENTENCES = (("abc", "an", "zz", "jij"), ("bo",), ("an", "abcabc"))
FINE = {"fine_tune": True}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"), layers=2)


def built(teacher, *, words=(), tags=NER, seed=0, **settings):
    """The teacher, and its vocabulary for these words."""
    vocabulary = teacher.tokenizer.build(list(words))
    torch.manual_seed(seed)
    return teacher.build(
        BuildInputs(tag_set=tags, kept_pieces=vocabulary.checkpoint_ids, **settings)
    ).eval(), vocabulary


def batch_of(vocabulary, sentences=SENTENCES):
    return make_batch(range(len(sentences)), vocabulary=vocabulary, characters=False, sentences=sentences)


def test_a_pruned_checkpoint_gives_the_same_on_its_corpus(checkpoint):
    words = {word for sentence in SENTENCES for word in sentence}
    outputs = {}
    for vocabulary in ("whole", "pruned"):
        teacher = HFTokenClassifierTeacher(path=checkpoint, vocabulary=vocabulary, **FINE)
        model, pieces = built(teacher, words=words)
        outputs[vocabulary] = model(batch_of(pieces), layers=(0, 2))
        assert model.model.get_input_embeddings().weight.shape[0] == pieces.size
        rebuilt = teacher.rebuild(model.architecture(), BuildInputs(tag_set=NER)).eval()
        load_weights(rebuilt, save_weights(model))
        assert torch.equal(
            rebuilt(batch_of(pieces)).distribution.emissions_BTY,
            outputs[vocabulary].distribution.emissions_BTY,
        )
    whole, pruned = outputs["whole"], outputs["pruned"]
    inside_BT = whole.distribution.mask_BT
    assert torch.equal(
        whole.distribution.emissions_BTY[inside_BT], pruned.distribution.emissions_BTY[inside_BT]
    )
    for layer, states_BTD in whole.hidden.items():
        assert torch.equal(states_BTD[inside_BT], pruned.hidden[layer][inside_BT])


def test_what_is_frozen_stays_and_all_else_is_trained(checkpoint):
    teacher = HFTokenClassifierTeacher(path=checkpoint, freeze=("embeddings", 1), **FINE)
    model, pieces = built(teacher)
    optimiser = torch.optim.SGD(select_trainable(model, None), 1.0)
    before = {name: value.clone() for name, value in model.named_parameters()}
    model.train()
    (-model(batch_of(pieces)).distribution.emissions_BTY[..., 0].sum()).backward()
    optimiser.step()
    unchanged = {name for name, value in model.named_parameters() if torch.equal(value, before[name])}
    frozen = {name for name in before if "embeddings" in name or "layer.0." in name}
    # A key's bias changes no attention.
    assert {name for name in unchanged - frozen if not name.endswith("key.bias")} == set()
    assert frozen <= unchanged


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"freeze": ("embeddings",)}, "used as published"),
        ({"vocabulary": "pruned"}, "no training text"),
        ({}, None),
    ],
)
def test_only_what_is_trained_is_frozen(checkpoint, settings, message):
    if message is None:
        teacher = HFTokenClassifierTeacher(path=checkpoint, freeze=(3,), **FINE)
        with pytest.raises(StoreError, match=r"no layer 3 to freeze.*from 1 to 2"):
            built(teacher)
    else:
        with pytest.raises(ValidationError, match=message):
            HFTokenClassifierTeacher(path=checkpoint, **settings)


def test_bf16_is_near_and_only_outside_training(checkpoint):
    exact, pieces = built(HFTokenClassifierTeacher(path=checkpoint))
    rough, _ = built(HFTokenClassifierTeacher(path=checkpoint, precision="bf16"))
    batch = batch_of(pieces)
    exact_chain, rough_chain = exact(batch).distribution, rough(batch).distribution
    assert rough_chain.dtype == torch.float32
    mask_BT = exact_chain.mask_BT
    assert not torch.equal(exact_chain.emissions_BTY[mask_BT], rough_chain.emissions_BTY[mask_BT])
    torch.testing.assert_close(
        rough_chain.emissions_BTY[mask_BT].exp(), exact_chain.emissions_BTY[mask_BT].exp(), atol=0.05, rtol=0
    )
    for model in (exact, rough):
        model.train()
        model.model.eval()
    assert torch.equal(exact(batch).distribution.emissions_BTY, rough(batch).distribution.emissions_BTY)


@pytest.mark.parametrize("fine_tune", [True, False])
def test_sentences_are_classified_as_transformers_does(tmp_path, fine_tune):
    """Sentences beyond the 16 pieces read at once are truncated, as Transformers does."""
    path = make_checkpoint(tmp_path, labels=("good", "bad"), head="sequence", layers=2)
    teacher = HFSequenceClassifierTeacher(path=path, fine_tune=fine_tune)
    model, pieces = built(teacher, tags=CLASSES, unit="sentence")
    sentences = (*SENTENCES, tuple("abcdefghij" * 3))
    output = model(batch_of(pieces, sentences), layers=(0, 2))
    assert output.distribution.lengths_B.tolist() == [1, 1, 1, 1]
    tokenizer = AutoTokenizer.from_pretrained(path)
    order = [[model.model.config.id2label[i] for i in range(2)].index(name) for name in CLASSES.tags]
    for b, words in enumerate(sentences):
        tokens = tokenizer(list(words), is_split_into_words=True, truncation=True, return_tensors="pt")
        expected = model.model(**tokens, output_hidden_states=True)
        logits_Y = output.distribution.emissions_BTY[b, 0]
        torch.testing.assert_close(logits_Y, expected.logits[0].log_softmax(-1)[order])
        for layer, states_BTD in output.hidden.items():
            torch.testing.assert_close(states_BTD[b, 0], expected.hidden_states[layer][0, 0])


PAIRS = (
    (("an", "bo"), ("abc", "jij")),
    # Too long are: both texts, the first, the second, both by an odd number.
    (tuple("abcdefghij"), tuple("jihgfedcba")),
    (tuple("abcdefghijabcdefghij"), ("an", "bo")),
    (("an",), tuple("abcdefghijabcdefghij")),
    (tuple("abcdefghij"), tuple("abcdefgh")),
)


@pytest.mark.parametrize("vocabulary", ["whole", "pruned"])
@pytest.mark.parametrize("types", [2, 1])
def test_pairs_are_classified_as_transformers_does(tmp_path, vocabulary, types):
    """Single texts are classified too, and by a checkpoint without a type for the second text."""
    path = make_checkpoint(tmp_path, labels=("good", "bad"), head="sequence", layers=2, types=types)
    teacher = HFSequenceClassifierTeacher(path=path, vocabulary=vocabulary, **FINE)
    words = [word for both in PAIRS for text in both for word in text]
    trained, pieces = built(teacher, words=[*words, SEPARATOR], tags=CLASSES, unit="sentence")
    assert trained._types == (types == 2)
    model = teacher.rebuild(trained.architecture(), BuildInputs(tag_set=CLASSES, unit="sentence")).eval()
    load_weights(model, save_weights(trained))
    whole, _ = built(HFSequenceClassifierTeacher(path=path, **FINE), tags=CLASSES, unit="sentence")
    sentences = [
        *([*first, SEPARATOR, *second] for first, second in PAIRS),
        ["an", "bo"],
        [*"abcdefghij" * 2],
    ]
    logits_BY = model(batch_of(pieces, sentences)).distribution.emissions_BTY[:, 0]
    tokenizer, lengths = AutoTokenizer.from_pretrained(path), []
    for b, texts in enumerate([*PAIRS, (sentences[-2],), (sentences[-1],)]):
        tokens = tokenizer(
            *map(list, texts), is_split_into_words=True, truncation="longest_first", return_tensors="pt"
        )
        lengths.append(tokens["input_ids"].shape[1])
        if types == 1:
            tokens.pop("token_type_ids")
        expected = whole.model(**tokens).logits[0].log_softmax(-1)
        torch.testing.assert_close(logits_BY[b], expected)
    assert max(lengths) == 16 > min(lengths)


def test_the_graph_of_a_classifier_of_pairs_gives_the_same_labels(tmp_path):
    path = make_checkpoint(tmp_path, labels=("good", "bad"), head="sequence", layers=2)
    model, pieces = built(HFSequenceClassifierTeacher(path=path), tags=CLASSES, unit="sentence")
    batch = batch_of(pieces, [["an", SEPARATOR, "bo", "abc"], ["bo", "abc", SEPARATOR, "an"], ["an", "bo"]])
    chain, session = model(batch).distribution, Session(onnx_files(model).float32)
    torch.testing.assert_close(
        torch.from_numpy(session.scores(batch)), chain.emissions_BTY, atol=1e-4, rtol=1e-4
    )


def test_a_checkpoint_without_a_head_is_told_to_be_fine_tuned(checkpoint):
    with pytest.raises(StoreError, match=r"no trained sequence-classification head.*fine_tune: true"):
        built(HFSequenceClassifierTeacher(path=checkpoint), tags=FLAT.tag_set(["a", "b"]), unit="sentence")


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        (HFTokenClassifierTeacher, "word"),
        (HFTokenClassifierTeacher, "sentence"),
        (HFSequenceClassifierTeacher, "sentence"),
    ],
)
def test_what_its_graph_is_traced_from_gives_the_same_scores(checkpoint, kind, unit):
    model, vocabulary = built(kind(path=checkpoint, **FINE), unit=unit)
    batch = batch_of(vocabulary)
    read = (batch.pieces_BP, batch.piece_lengths_B, batch.first_BT, batch.lengths_B)
    with torch.no_grad():
        scores_BTY = model._scores(*read)
        chain = model(batch).distribution
    assert torch.equal(scores_BTY, chain.emissions_BTY)


def test_its_file_gives_the_best_legal_labelling(checkpoint):
    model, vocabulary = built(HFTokenClassifierTeacher(path=checkpoint, **FINE))
    batch = batch_of(vocabulary)
    unconstrained = viterbi(model(batch).distribution)[0]
    model.legal = NER.legal()
    legal = viterbi(model(batch).distribution, model.legal)[0]
    assert not torch.equal(unconstrained, legal), "labels of random scores are malformed"
    assert torch.equal(torch.from_numpy(Session(onnx_files(model).float32).labels(batch)), legal)


def test_a_classifier_of_sentences_has_a_form_in_8_bits(tmp_path):
    path = make_checkpoint(tmp_path, labels=("good", "bad"), head="sequence")
    model, pieces = built(HFSequenceClassifierTeacher(path=path), tags=CLASSES, unit="sentence")
    batch, files = batch_of(pieces), onnx_files(model)
    assert len(files.int8) < len(files.float32)
    assert Session(files.int8).labels(batch).shape == (3, 1)
    expected_B1 = viterbi(model(batch).distribution)[0]
    assert torch.equal(torch.from_numpy(Session(files.float32).labels(batch)), expected_B1)


def other_architecture(folder, config, head):
    """Write a checkpoint of a given architecture with the small checkpoint's tokenizer."""
    path = make_checkpoint(folder)
    names = {"id2label": dict(enumerate(IOB2)), "label2id": {name: row for row, name in enumerate(IOB2)}}
    head(config(vocab_size=len(PIECES), hidden_size=16, **names)).save_pretrained(path)
    return path


def test_checkpoints_of_other_architectures_are_fine_tuned(tmp_path):
    sizes = {"n_layer": 1, "n_head": 2, "n_positions": 16}
    gpt2 = other_architecture(tmp_path / "gpt2", partial(GPT2Config, **sizes), GPT2ForTokenClassification)
    model, _ = built(HFTokenClassifierTeacher(path=gpt2, freeze=("embeddings",), **FINE))
    assert {id(p) for p in select_trainable(model, None)} == {
        id(p) for name, p in model.named_parameters() if "wte" not in name
    }
    sizes = {
        "embedding_size": 8,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
    }
    albert = other_architecture(
        tmp_path / "albert", partial(AlbertConfig, **sizes), AlbertForTokenClassification
    )
    assert select_trainable(built(HFTokenClassifierTeacher(path=albert, **FINE))[0], None)
    with pytest.raises(StoreError, match=r"no list of layers.*freeze embeddings alone"):
        built(HFTokenClassifierTeacher(path=albert, freeze=(1,), **FINE))
