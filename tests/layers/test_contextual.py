"""Features of a frozen encoder: those of Transformers itself, never trained, never stored."""

import pytest
import torch
from pydantic import TypeAdapter
from transformers import AutoModel, AutoTokenizer

from raykd.corpora.encoding import encode_text
from raykd.corpora.vocabulary import WordVocabulary
from raykd.errors import StoreError
from raykd.layers import BiLSTMTagger, BiLSTMTaggerShape, save_weights
from raykd.layers.contextual import ContextualConfig
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
    return TypeAdapter(ContextualConfig).validate_python({"path": path, **settings})


def batch_for(config, sentences=SENTENCES):
    text = encode_text(sentences, WORDS, context=config.vocabulary())
    return text.gather(range(len(sentences)))


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
    features_BTD = config.build().eval()(batch_for(config).context)
    for b, words in enumerate(SENTENCES):
        states_PD, word_of_piece = direct(checkpoint, words, layer)
        for t in range(len(words)):
            own_ND = states_PD[[p for p, word in enumerate(word_of_piece) if word == t]]
            expected_D = own_ND.mean(0) if pooling == "mean" else own_ND[0]
            torch.testing.assert_close(features_BTD[b, t], expected_D, **NEAR)


def test_several_layers_stand_side_by_side_or_are_averaged(checkpoint):
    one, two = (config_of(checkpoint, layers=(layer,)).build().eval() for layer in (1, 2))
    both = config_of(checkpoint, layers=(1, -1))
    batch = batch_for(both).context
    wide = both.build().eval()
    assert wide.output_size == 2 * one.output_size
    torch.testing.assert_close(wide(batch), torch.cat([one(batch), two(batch)], -1))
    mean = config_of(checkpoint, layers=(1, -1), combine="mean").build().eval()
    torch.testing.assert_close(mean(batch), (one(batch) + two(batch)) / 2, **NEAR)


def test_sentences_longer_than_the_encoder_reads_have_features_throughout(checkpoint):
    config = config_of(checkpoint)
    features = config.build().eval()
    long = ["abcdefghij"[i % 10] for i in range(40)]
    both_BTD = features(batch_for(config, [long, ["an", "abc"]]).context)
    assert (both_BTD[0].abs().sum(-1) > 0).all()
    torch.testing.assert_close(
        both_BTD[1, :2], features(batch_for(config, [["an", "abc"]]).context)[0], **NEAR
    )
    # Words of the first window that are far from its cut see exactly it: 16 pieces with [CLS] and [SEP].
    torch.testing.assert_close(
        both_BTD[0, :6], features(batch_for(config, [long[:14]]).context)[0, :6], **NEAR
    )


def test_a_layer_that_is_not_there_is_refused(checkpoint):
    with pytest.raises(StoreError, match=r"has no layer 3.*choose from -3 to 2"):
        config_of(checkpoint, layers=(-1, 3)).build()


def test_an_encoder_that_changed_is_refused(tmp_path):
    config = config_of(make_checkpoint(tmp_path, head=False)).pinned()
    make_checkpoint(tmp_path, head=False, seed=1)
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        config.build()


def test_identity_and_cost_are_the_weights_not_the_folder(tmp_path):
    here, there = (config_of(make_checkpoint(tmp_path / name, head=False)) for name in ("a", "b"))
    assert here.pinned().shape() == there.pinned().shape()
    assert here.shape() != there.shape()


def test_what_is_kept_in_training_is_what_would_be_computed(checkpoint, monkeypatch):
    config = config_of(checkpoint)
    fresh, keeping = config.build().eval(), config.build().train()
    read, seen = keeping._read, []
    monkeypatch.setattr(keeping, "_read", lambda *args: (seen.append(len(args[1])), read(*args))[1])
    for sentences in (SENTENCES[:2], SENTENCES, SENTENCES[::-1]):
        batch = batch_for(config, sentences).context
        for b, words in enumerate(sentences):
            torch.testing.assert_close(keeping(batch)[b, : len(words)], fresh(batch)[b, : len(words)], **NEAR)
    assert seen == [2, 1]
    keeping.eval()(batch)
    assert seen == [2, 1]


def test_nothing_is_kept_beyond_the_room_nor_outside_training(checkpoint, monkeypatch):
    monkeypatch.setattr("raykd.layers.contextual.KEPT_BYTES", 3 * 2 * 16)
    config = config_of(checkpoint)
    batch = batch_for(config).context
    idle, keeping = config.build().eval(), config.build().train()
    assert torch.equal(idle(batch), keeping(batch))
    assert not idle._kept
    assert [len(features) for features in keeping._kept.values()] == [1]
    assert torch.equal(idle(batch), keeping(batch))


def test_words_of_the_same_pieces_are_distinguished(checkpoint):
    """`zz` and `z` are both one unknown piece; features belong to words, so where they begin counts too."""
    config = config_of(checkpoint, pooling="mean")
    features = config.build().train()
    split, whole = (batch_for(config, [words]).context for words in (["a", "b"], ["a"]))
    assert features(split).shape[1] == 2
    assert features(whole).shape[1] == 1
    joined = type(split)(
        **{**vars(split), "first_BT": split.first_BT[:, :1], "lengths_B": split.lengths_B - 1}
    )
    assert features(joined).shape[1] == 1


def test_the_encoder_is_neither_trained_nor_stored(checkpoint):
    config = config_of(checkpoint)
    context = config.build()
    before = {name: tensor.clone() for name, tensor in context.encoder.model.state_dict().items()}
    shape = BiLSTMTaggerShape(pieces=WORDS.size, tags=3, embedding_dim=0, hidden_dim=4)
    model = BiLSTMTagger(shape, context=context).train()
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
    after = context.encoder.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(p.grad is None for p in context.frozen_parameters())
    assert not context.encoder.model.training
    own, frozen = (
        sum(p.numel() for p in model.parameters()),
        sum(p.numel() for p in context.frozen_parameters()),
    )
    assert sum(p.numel() for p in model.all_parameters()) == own + frozen
    assert frozen > len(WORDS.words)
    assert not [name for name in model.state_dict() if name.startswith("context")]
    assert len(save_weights(model)) < 4 * own + 4000


def test_a_batch_without_the_encoders_pieces_is_refused(checkpoint):
    shape = BiLSTMTaggerShape(pieces=WORDS.size, tags=3, embedding_dim=2, hidden_dim=4)
    model = BiLSTMTagger(shape, context=config_of(checkpoint).build())
    with pytest.raises(ValueError, match="the batch has none of its pieces"):
        model(encode_text(SENTENCES, WORDS).gather(range(3)))
