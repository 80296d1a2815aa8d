"""Features of frozen encoders: those of Transformers itself, never trained, never stored with a model."""

import json
from dataclasses import replace

import pytest
import torch
from pydantic import TypeAdapter
from transformers import AutoModel, AutoTokenizer

from raykd.corpora.encoded_text import encode_text
from raykd.corpora.vocabulary import WordVocabulary
from raykd.errors import StoreError
from raykd.layers.contextual import ContextualConfig, EncoderConfig, contextual_parts, pinned_parts
from raykd.layers.frozen_inputs import FrozenInputs
from raykd.layers.model import save_weights
from raykd.layers.tagger import Tagger, TaggerShape
from raykd.structures import path_loss
from tests.teachers.checkpoints import make_checkpoint

SENTENCES = [["abc", "an", "zz", "jij"], ["bo"], ["an", "abcabc", "bo"]]
WORDS = WordVocabulary.build([word for words in SENTENCES for word in words])
# Features are kept in float16.
NEAR = {"rtol": 1e-3, "atol": 1e-3}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"), head=False, layers=2)


def config_of(path, **settings):
    return TypeAdapter(EncoderConfig).validate_python({"path": path, **settings})


def batch_for(config, sentences=SENTENCES):
    text = encode_text(sentences, WORDS, context=[config.vocabulary()])
    return text.gather(range(len(sentences)))


def features_of(config, sentences=SENTENCES):
    """Return the encoder's vectors in float32."""
    return config.build().compute(batch_for(config, sentences).context[0]).float()


def direct(checkpoint, words, layer):
    """Transformers alone on one sentence: a hidden state [P, D] and each piece's word."""
    tokens = AutoTokenizer.from_pretrained(checkpoint)(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        output = AutoModel.from_pretrained(checkpoint).eval()(**tokens, output_hidden_states=True)
    return output.hidden_states[layer][0], tokens.word_ids(0)


@pytest.mark.parametrize("layer", [-1, 0, 1])
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_features_are_those_of_transformers(checkpoint, layer, pooling):
    config = config_of(checkpoint, layers=(layer,), pooling=pooling)
    features_BTD = features_of(config)
    for b, words in enumerate(SENTENCES):
        states_PD, word_of_piece = direct(checkpoint, words, layer)
        for t in range(len(words)):
            word_ND = states_PD[[p for p, word in enumerate(word_of_piece) if word == t]]
            expected_D = word_ND.mean(0) if pooling == "mean" else word_ND[0]
            torch.testing.assert_close(features_BTD[b, t], expected_D, **NEAR)


def test_several_layers_stand_side_by_side_or_are_averaged(checkpoint):
    first, second = (features_of(config_of(checkpoint, layers=(layer,))) for layer in (1, 2))
    both = config_of(checkpoint, layers=(1, -1))
    assert both.build().output_size == 2 * first.shape[2]
    torch.testing.assert_close(features_of(both), torch.cat([first, second], -1))
    mean = config_of(checkpoint, layers=(1, -1), combine="mean")
    torch.testing.assert_close(features_of(mean), (first + second) / 2, **NEAR)


def test_sentences_longer_than_the_encoder_reads_have_features_throughout(checkpoint):
    config = config_of(checkpoint)
    long = ["abcdefghij"[i % 10] for i in range(40)]
    both_BTD = features_of(config, [long, ["an", "abc"]])
    assert (both_BTD[0].abs().sum(-1) > 0).all()
    torch.testing.assert_close(both_BTD[1, :2], features_of(config, [["an", "abc"]])[0], **NEAR)
    # Words of the first window that are far from its cut see exactly it: 16 pieces with [CLS] and [SEP].
    torch.testing.assert_close(both_BTD[0, :6], features_of(config, [long[:14]])[0, :6], **NEAR)


def test_a_layer_that_is_not_there_is_refused(checkpoint):
    with pytest.raises(StoreError, match=r"has no layer 3.*choose from -3 to 2"):
        config_of(checkpoint, layers=(-1, 3)).build()


def test_an_encoder_that_changed_is_refused(tmp_path):
    config = config_of(make_checkpoint(tmp_path, head=False)).pinned()
    make_checkpoint(tmp_path, head=False, seed=1)
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        config.build()


def test_identity_and_cost_are_the_weights_not_the_folder(tmp_path):
    config, copy_config = (config_of(make_checkpoint(tmp_path / name, head=False)) for name in ("a", "b"))
    assert config.pinned().shape() == copy_config.pinned().shape()
    assert config.shape() != copy_config.shape()


def test_the_encoder_is_neither_trained_nor_stored(checkpoint):
    config = config_of(checkpoint)
    context = FrozenInputs.from_config(config)
    encoder = context.parts[0].encoder.model
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    shape = TaggerShape(pieces=WORDS.size, tags=3, embedding_dim=0, hidden_dim=4)
    model = Tagger(shape, context=context).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    batch, gold_BT = batch_for(config), torch.zeros(3, 4, dtype=torch.int64)
    losses = []
    for _ in range(5):
        loss = path_loss(model(batch).distribution, gold_BT).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    after = encoder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.grad is None for p in encoder.parameters())
    assert not encoder.training
    trained_size, frozen_size = (
        sum(p.numel() for p in model.parameters()),
        sum(p.numel() for p in encoder.parameters()),
    )
    assert sum(p.numel() for p in model.all_parameters()) == trained_size + frozen_size
    assert frozen_size > len(WORDS.words)
    assert not [name for name in model.state_dict() if name.startswith("context")]
    assert len(save_weights(model)) < 4 * trained_size + 4000


def test_a_batch_without_the_encoders_pieces_is_refused(checkpoint):
    shape = TaggerShape(pieces=WORDS.size, tags=3, embedding_dim=2, hidden_dim=4)
    model = Tagger(shape, context=FrozenInputs.from_config(config_of(checkpoint)))
    with pytest.raises(ValueError, match="reads 1 encoders, the batch has pieces of 0"):
        model(encode_text(SENTENCES, WORDS).gather(range(3)))


def test_stored_features_are_read_instead_of_computing_them(checkpoint, monkeypatch):
    config = config_of(checkpoint)
    context, batch = FrozenInputs.from_config(config), batch_for(config)
    computed_BTD = context(batch)
    monkeypatch.setattr(type(context.parts[0]), "compute", lambda *_: pytest.fail("computed again"))
    stored = replace(batch, context=(), features_BTD=computed_BTD.half())
    torch.testing.assert_close(context(stored), computed_BTD)


def test_an_encoder_and_a_table_stand_side_by_side(checkpoint, tmp_path):
    (tmp_path / "two.vec").write_text("an 1 2\nbo 3 4\n")
    parsed = TypeAdapter(ContextualConfig).validate_json(
        json.dumps([{"path": checkpoint, "layers": [0, 1]}, {"vectors": str(tmp_path / "two.vec")}])
    )
    encoder, table = contextual_parts(pinned_parts(parsed))
    text = encode_text(SENTENCES, WORDS, context=[encoder.vocabulary(), table.vocabulary()])
    both = FrozenInputs.from_config((encoder, table))
    features_BTD = both(text.gather(range(3)))
    assert both.output_size == 2 * 16 + 2
    torch.testing.assert_close(features_BTD[0, :4, :32], features_of(encoder)[0, :4], **NEAR)
    assert features_BTD[0, :2, 32:].tolist() == [[0, 0], [1, 2]]
    assert set(both.external_parameters()) == {encoder.checksum, table.checksum}


def test_one_encoder_read_twice_counts_once(checkpoint):
    both = (config_of(checkpoint, layers=(0,)).pinned(), config_of(checkpoint, layers=(1,)).pinned())
    shape = TaggerShape(pieces=WORDS.size, tags=3, embedding_dim=2, hidden_dim=4)
    once, twice = (Tagger(shape, context=FrozenInputs.from_config(configs)) for configs in (both[:1], both))
    frozen_sizes = [
        sum(p.numel() for p in model.all_parameters()) - sum(p.numel() for p in model.parameters())
        for model in (once, twice)
    ]
    assert frozen_sizes[0] == frozen_sizes[1] > 0
