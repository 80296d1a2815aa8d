"""Conformance of all students and teachers of the tables: build, serialise, run, learn."""

import json
import pickle

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from raykd.corpora.encoded_text import encode_text
from raykd.corpora.vocabulary import CharacterVocabulary, count_words
from raykd.errors import ExportError
from raykd.forms import FLAT, SPANS, TREE
from raykd.layers.contextual import contextual_parts
from raykd.layers.ensemble import Ensemble
from raykd.layers.hf_config import HFConfig
from raykd.layers.model import load_weights, save_weights
from raykd.layers.model_config import BuildInputs
from raykd.needs import LAYER_SIGNALS, LIVE_SIGNALS
from raykd.signals import SIGNALS
from raykd.structures import Spans, log_partition, score, token_marginals, viterbi
from raykd.students import STUDENTS, StudentConfig
from raykd.teachers import TEACHERS, TeacherConfig
from tests.layers.graphs import assert_same_as, session_of
from tests.teachers.checkpoints import make_checkpoint

TAGS = SPANS.tag_set(["LOC", "PER"])
SENTENCES = [["an", "bo", "abc"], ["bo"], ["jij", "an", "abc", "bo", "abcabc"], ["an", "jij"]]
GOLD = [
    ["B-LOC", "E-LOC", "S-PER"],
    ["O"],
    ["B-PER", "I-PER", "E-PER", "O", "S-LOC"],
    ["S-LOC", "S-PER"],
]
SMALL = {
    "bilstm": {"embedding_dim": 8, "hidden_dim": 6, "vocabulary": {"kind": "wordpiece", "size": 100}},
    "transformer": {"embedding_dim": 8, "heads": 2, "vocabulary": {"kind": "wordpiece", "size": 100}},
    "bilstm_crf": {"embedding_dim": 8, "hidden_dim": 6, "character_dim": 4, "character_hidden": 4},
    "bilstm_maxent": {"embedding_dim": 8, "hidden_dim": 6, "character_dim": 4, "character_hidden": 4},
    "hf_token_classifier": {"path": "set by the fixture"},
    "hf_sequence_classifier": {"path": "set by the fixture", "fine_tune": True},
    "pretrained": {"path": "set by the fixture"},
}
OF_TEACHERS = ("scope", "stores", "epochs", "training")
SMALL["biaffine_ner"] = SMALL["bilstm_crf"] | {"biaffine_dim": 20}
SMALL["biaffine_parser"] = SMALL["bilstm_crf"] | {"layers": 1, "arc_dim": 8, "relation_dim": 8}
SMALL["second_order_parser"] = SMALL["biaffine_parser"] | {"pair_dim": 4}
VARIANTS = [("bilstm", {}), ("bilstm", {"decoder": "maxent"}), ("bilstm", {"layers": 2}), ("bilstm_crf", {})]
WORDS = {"vocabulary": {"kind": "word"}, "character_dim": 4, "character_hidden": 3, "word_dropout": 0.1}
VARIANTS += [
    ("bilstm", WORDS),
    ("bilstm", {"projection": 10, "decoder": "maxent"}),
    ("bilstm_maxent", {}),
    ("bilstm_crf", {"character_dim": 0}),
]
VARIANTS += [
    ("transformer", {}),
    ("transformer", {**WORDS, "layers": 2, "decoder": "maxent", "projection": 10}),
]
VARIANTS += [("bilstm_crf", {"contextual": {"path": "set by the fixture"}, "embedding_dim": 0})]
VARIANTS += [("biaffine_parser", {}), ("biaffine_parser", {"layers": 2}), ("second_order_parser", {})]
VARIANTS += [("biaffine_ner", {}), ("hf_token_classifier", {}), ("hf_token_classifier", {"fine_tune": True})]
VARIANTS += [
    ("hf_token_classifier", {"fine_tune": True, "vocabulary": "pruned"}),
    ("hf_sequence_classifier", {}),
    ("pretrained", {}),
    ("pretrained", {"vocabulary": "pruned"}),
    ("pretrained", {"layers": (0,), "heads": 1, "feed_forward": 20, "embedding_rank": 6}),
]
SIZES = {"embedding_dim": 8, "hidden_dim": 6, "heads": 2, "path": "set by the fixture"}
# Language models predict pieces, not tags (tests/training/test_masked_lm.py, test_live.py), a pointer-generator the
# steps of trees (tests/training/test_semantic_parsing.py), an annotator gives stored answers
# (tests/training/test_answer_reader.py), and no teacher is no model.
LABELLING = [
    kind
    for kind, entry in {**STUDENTS, **TEACHERS}.items()
    if {SPANS, TREE} & {*entry.forms}
    and getattr(entry, "model_signals", True)
    and not getattr(entry, "gives_answers", False)
]
VARIANTS += [(kind, {}) for kind in LABELLING if kind not in {kind for kind, _ in VARIANTS}]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=VARIANTS, ids=lambda variant: "-".join([variant[0], *map(str, variant[1].values())]))
def config(request, checkpoint):
    """Configurations of the entries in all variants, as JSON gives it."""
    kind, settings = request.param
    content = {"kind": kind} | (SMALL.get(kind) or small(kind)) | settings
    if "path" in content:
        content["path"] = checkpoint
    if "contextual" in content:
        content["contextual"] = {"path": checkpoint}
    return TypeAdapter(adapter_of(kind)).validate_json(json.dumps(content))


def small(kind):
    """The settings of an entry of which nothing is listed: a small number for each size that it asks for."""
    fields = {**STUDENTS, **TEACHERS}[kind].model_fields
    required = {name: 6 for name, field in fields.items() if field.is_required()}
    return required | {name: size for name, size in SIZES.items() if name in fields}


def adapter_of(kind):
    return StudentConfig if kind in STUDENTS else TeacherConfig


def encode(config):
    """Encoded sentences, and the sizes for the model."""
    vocabulary = config.tokenizer.build(count_words(SENTENCES))
    letters = (
        CharacterVocabulary.build([w for words in SENTENCES for w in words])
        if config.reads_characters
        else None
    )
    sizes = {"vocabulary_size": vocabulary.size, "characters": letters.size if letters else 0}
    if isinstance(config, HFConfig) and getattr(vocabulary, "checkpoint_ids", None):
        sizes["kept_pieces"] = vocabulary.checkpoint_ids
    context = [part.vocabulary() for part in contextual_parts(config.contextual)]
    return encode_text(SENTENCES, vocabulary, letters, context=context), sizes


def build(config, sizes, *, seed=0, dropout=0.0, **settings):
    torch.manual_seed(seed)
    unit = "word" if "word" in config.units else "sentence"
    return config.build(
        BuildInputs(**{"tag_set": TAGS, "dropout": dropout, "unit": unit, **sizes, **settings})
    )


def lengths_of(config):
    """Labels per sentence."""
    return [3, 1, 5, 2] if "word" in config.units else [1, 1, 1, 1]


def labels_of(config):
    """Labels per word in the batch of all sentences; for a parser every tag under every head."""
    return len(TAGS) * (max(lengths_of(config)) + 1 if config.decoder == "arcs" else 1)


def distribution(model, batch):
    return model(batch).distribution


def stirred(model):
    """The model with all weights moved: some begin at zero, where every sentence looks the same."""
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw))
    return model


def test_every_entry_is_tested():
    assert {kind for kind, _ in VARIANTS} == {*LABELLING}
    assert all(entry.model_fields["kind"].default == kind for kind, entry in {**STUDENTS, **TEACHERS}.items())


def test_configuration_survives_json_and_pickle(config):
    adapter = TypeAdapter(adapter_of(config.kind))
    assert adapter.validate_json(json.dumps(config.model_dump(mode="json"))) == config
    assert pickle.loads(pickle.dumps(config)) == config


def test_configuration_is_frozen_and_strict(config):
    with pytest.raises(ValidationError):
        config.kind = "other"
    with pytest.raises(ValidationError):
        type(config)(**{**config.model_dump(), "oddity": 1})


def test_shape_is_plain_and_distinguishes_shapes(config):
    shape = config.shape()
    assert json.loads(json.dumps(shape)) == shape
    if "hidden_dim" in type(config).model_fields:
        assert config.model_copy(update={"hidden_dim": 99}).shape() != shape


def test_model_gives_a_distribution_over_tags(config):
    text, sizes = encode(config)
    actual = distribution(build(config, sizes).eval(), text.gather(np.arange(4)))
    assert token_marginals(actual).shape == (4, max(lengths_of(config)), labels_of(config))
    assert actual.lengths_B.tolist() == lengths_of(config)
    assert actual.dtype == torch.float32
    assert isinstance(actual, Spans) == (config.decoder == "spans")
    assert (getattr(actual, "transitions", None) is not None) == (config.decoder == "crf")
    assert torch.isfinite(log_partition(actual)).all()


def test_a_sentence_is_tagged_the_same_alone(config):
    text, sizes = encode(config)
    model = stirred(build(config, sizes).eval())
    whole = distribution(model, text.gather(np.arange(4)))
    for row in range(4):
        alone = distribution(model, text.gather(np.array([row])))
        near = {"rtol": 1e-4, "atol": 1e-5}
        alone_BTY = token_marginals(alone)  # a parser has labels for each head: more in a longer batch
        marginals_BTY = token_marginals(whole)[[row], : alone.time, : alone_BTY.shape[2]]
        torch.testing.assert_close(marginals_BTY, alone_BTY, **near)
        torch.testing.assert_close(log_partition(whole)[[row]], log_partition(alone), **near)


def test_building_depends_on_the_generator_alone(config):
    _, sizes = encode(config)
    assert save_weights(build(config, sizes)) == save_weights(build(config, sizes))


def test_weights_come_back_in_another_model(config):
    text, sizes = encode(config)
    batch = text.gather(np.arange(4))
    model, copy = stirred(build(config, sizes).eval()), build(config, sizes, seed=1).eval()
    assert not torch.equal(*(token_marginals(distribution(network, batch)) for network in (model, copy)))
    load_weights(copy, save_weights(model))
    for operation in (log_partition, token_marginals):
        assert torch.equal(*(operation(distribution(network, batch)) for network in (model, copy)))


def test_model_learns_the_tags_of_a_few_sentences(config):
    text, sizes = encode(config)
    batch = text.gather(np.arange(4))
    model = build(config, sizes, dropout=0.1).train()
    gold_BT = torch.zeros(4, max(lengths_of(config)), dtype=torch.long)
    for row, (tags, length) in enumerate(zip(GOLD, lengths_of(config), strict=True)):
        gold_BT[row, :length] = torch.from_numpy(TAGS.encode(tags))[:length].long()
    if getattr(config, "trained", True) is False:
        pytest.skip("taken as it is: raykd does not train it")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        actual = distribution(model, batch)
        loss = (log_partition(actual) - score(actual, gold_BT)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    actual = distribution(model.eval(), batch)
    assert float((log_partition(actual) - score(actual, gold_BT)).mean().detach()) < losses[0] / 2


def test_hidden_states_have_the_stated_sizes_and_change_nothing(config):
    """States of a layer and the distribution are the same, whatever other layers are requested."""
    text, sizes = encode(config)
    batch, model = text.gather(np.arange(4)), stirred(build(config, sizes).eval())
    depth = config.depth or 1
    layers = tuple(range(depth + 1))
    whole, plain = model(batch, layers=layers), model(batch)
    assert not plain.hidden
    assert torch.equal(log_partition(whole.distribution), log_partition(plain.distribution))
    assert torch.equal(token_marginals(whole.distribution), token_marginals(plain.distribution))
    for layer in (*layers, -1):
        states_BTD = model(batch, layers=(layer,)).hidden[layer]
        assert torch.equal(states_BTD, whole.hidden[layer % (depth + 1)])
        assert states_BTD.shape == (4, max(lengths_of(config)), model.hidden_size(layer))
        if config.kind in TEACHERS:
            assert config.hidden_size(layer) == model.hidden_size(layer)
    for ask in (model.hidden_size, getattr(config, "hidden_size", model.hidden_size)):
        with pytest.raises(ValueError, match=f"no layer {depth + 1}; choose from 0 .* to {depth}"):
            ask(depth + 1)


def test_layer_groups_are_disjoint_and_together_all_parameters(config):
    _, sizes = encode(config)
    model = build(config, sizes)
    groups = model.layer_groups()
    projection = ["projection"] if getattr(config, "projection", None) else []
    assert list(groups) == ["head", *projection, "encoder", "embeddings"]
    grouped = [id(parameter) for group in groups.values() for parameter in group]
    assert len(grouped) == len(set(grouped))
    assert set(grouped) == {id(parameter) for parameter in model.parameters()}
    assert groups["head"]
    assert groups["encoder"]


def test_its_onnx_graph_gives_the_same_labels(config):
    if config.kind.startswith("hf_"):
        return  # traced, which takes seconds: tests/teachers
    text, sizes = encode(config)
    model = stirred(build(config, sizes).eval())
    if config.contextual is not None or config.decoder in ("spans", "arcs"):
        with pytest.raises(ExportError, match="export a"):
            model.to_onnx()
        return
    session = session_of(model.to_onnx())
    for rows in ([0, 1, 2, 3], [1], [2, 0]):
        assert_same_as(model, session, text.gather(np.array(rows)))


CLASSES = FLAT.tag_set(["bad", "good", "neither"])


def test_one_label_per_sentence_is_a_chain_of_length_1(config):
    if config.decoder in ("spans", "arcs") or getattr(config, "trained", True) is False:
        return  # spans and arcs need words, and the labels of a checkpoint as it is are of words
    text, sizes = encode(config)
    batch, model = (
        text.gather(np.arange(4)),
        stirred(build(config, sizes, tag_set=CLASSES, unit="sentence").eval()),
    )
    actual = model(batch, layers=(0,))
    assert actual.distribution.lengths_B.tolist() == [1, 1, 1, 1]
    assert token_marginals(actual.distribution).shape == (4, 1, 3)
    assert actual.hidden[0].shape[:2] == (4, 1)
    for row in range(4):
        alone = distribution(model, text.gather(np.array([row])))
        torch.testing.assert_close(
            token_marginals(alone), token_marginals(actual.distribution)[[row]], rtol=1e-4, atol=1e-5
        )


def test_several_teachers_offer_what_their_mean_can(config):
    if config.kind not in TEACHERS:
        return
    assert config.offers == config.model_signals
    assert config.model_copy(update={"combine": "posteriors"}).offers == config.model_signals
    several = config.model_copy(update={"count": 2})
    # The mean of several has no hidden states: each has its own.
    assert several.offers == tuple(signal for signal in config.model_signals if signal not in LAYER_SIGNALS)
    mixed = several.model_copy(update={"combine": "posteriors"})
    assert mixed.offers == ("token_marginals", "kbest")
    assert config.kind in several.title != config.title == config.kind


def test_several_members_are_one_distribution(config):
    if config.kind not in TEACHERS:
        return
    text, sizes = encode(config)
    batch, members = text.gather(np.arange(4)), [build(config, sizes, seed=seed) for seed in (0, 1)]
    for combine in ("scores", "posteriors"):
        actual = distribution(Ensemble(members, combine=combine).eval(), batch)
        marginals_BTY = token_marginals(actual)
        torch.testing.assert_close(marginals_BTY.sum(-1), (marginals_BTY.sum(-1) > 0.5).float())
        assert viterbi(actual)[0].shape == (4, max(lengths_of(config)))
    with pytest.raises(ValueError, match="no hidden states"):
        Ensemble(members, combine="scores")(batch, layers=(0,))


def test_pinned_teachers_are_named_by_the_weights_they_are_given(config):
    if config.kind not in TEACHERS:
        return
    pinned = config.pinned()
    assert (pinned == config) == (config.contextual is None and not config.kind.startswith("hf_"))
    assert pinned.pinned() == pinned
    text, sizes = encode(config)
    actual = distribution(build(pinned, sizes), text.gather(np.arange(4)))
    assert actual.lengths_B.tolist() == lengths_of(config)


@pytest.mark.parametrize("kind", TEACHERS)
def test_teachers_offer_known_signals(kind):
    assert set(TEACHERS[kind].model_signals) <= {*SIGNALS, *LIVE_SIGNALS}
    if kind == "none":
        assert not TEACHERS[kind].model_signals
        return
    if TEACHERS[kind].gives_answers:  # it is never trained
        return
    assert all(hasattr(TEACHERS[kind], name) or name in TEACHERS[kind].model_fields for name in OF_TEACHERS)
