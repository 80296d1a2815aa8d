"""What every student and teacher of the tables must do: build, serialise, run, learn."""

import json
import pickle

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from raykd.corpora.encoding import encode_text
from raykd.corpora.tags import TagSet
from raykd.corpora.vocabulary import CharacterVocabulary, build_vocabulary
from raykd.layers import Ensemble, load_weights, save_weights
from raykd.signals import SIGNALS
from raykd.structures import Spans, log_partition, score, token_marginals, viterbi
from raykd.students import STUDENTS, StudentConfig
from raykd.teachers import TEACHERS, TeacherConfig
from tests.teachers.checkpoints import make_checkpoint

TAGS = TagSet.of_types(["LOC", "PER"])
SENTENCES = [["an", "bo", "abc"], ["bo"], ["jij", "an", "abc", "bo", "abcabc"], ["an", "jij"]]
GOLD = [
    ["B-LOC", "E-LOC", "S-PER"],
    ["O"],
    ["B-PER", "I-PER", "E-PER", "O", "S-LOC"],
    ["S-LOC", "S-PER"],
]
SMALL = {
    "bilstm": {"embedding_dim": 8, "hidden_dim": 6, "vocabulary": {"kind": "wordpiece", "size": 100}},
    "bilstm_crf": {"embedding_dim": 8, "hidden_dim": 6, "character_dim": 4, "character_hidden": 4},
    "bilstm_maxent": {"embedding_dim": 8, "hidden_dim": 6, "character_dim": 4, "character_hidden": 4},
    "hf_token_classifier": {"path": "set by the fixture"},
}
SMALL["biaffine_ner"] = SMALL["bilstm_crf"] | {"biaffine_dim": 20}
VARIANTS = [("bilstm", {}), ("bilstm", {"decoder": "maxent"}), ("bilstm", {"layers": 2}), ("bilstm_crf", {})]
WORDS = {"vocabulary": {"kind": "word"}, "character_dim": 4, "character_hidden": 3, "word_dropout": 0.1}
VARIANTS += [("bilstm", WORDS), ("bilstm_maxent", {}), ("bilstm_crf", {"character_dim": 0})]
VARIANTS += [("bilstm_crf", {"contextual": {"path": "set by the fixture"}, "embedding_dim": 0})]
VARIANTS += [("biaffine_ner", {}), ("hf_token_classifier", {}), ("hf_token_classifier", {"fine_tune": True})]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(params=VARIANTS, ids=lambda variant: "-".join([variant[0], *map(str, variant[1].values())]))
def config(request, checkpoint):
    """Each entry's configuration in its variants, as JSON gives it."""
    kind, settings = request.param
    content = {"kind": kind} | SMALL[kind] | settings
    if "path" in content:
        content["path"] = checkpoint
    if "contextual" in content:
        content["contextual"] = {"path": checkpoint}
    return TypeAdapter(adapter_of(kind)).validate_json(json.dumps(content))


def adapter_of(kind):
    return StudentConfig if kind in STUDENTS else TeacherConfig


def encode(config):
    """The sentences as the model reads them, and the sizes it is built with."""
    vocabulary = build_vocabulary(config.vocabulary, SENTENCES)
    letters = (
        CharacterVocabulary.build([w for words in SENTENCES for w in words])
        if config.reads_characters
        else None
    )
    sizes = {"vocabulary_size": vocabulary.size, "characters": letters.size if letters else 0}
    context = config.contextual and config.contextual.vocabulary()
    return encode_text(SENTENCES, vocabulary, letters, context=context), sizes


def build(config, sizes, *, seed=0, dropout=0.0):
    torch.manual_seed(seed)
    return config.build(tag_set=TAGS, dropout=dropout, **sizes)


def stirred(model):
    """The model with all of its weights moved: some begin at zero, where every sentence looks the same."""
    draw = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=draw))
    return model


def test_every_entry_is_tested():
    assert {kind for kind, _ in VARIANTS} == {*STUDENTS, *TEACHERS}
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


def test_shape_is_plain_and_tells_shapes_apart(config):
    shape = config.shape()
    assert json.loads(json.dumps(shape)) == shape
    if "hidden_dim" in type(config).model_fields:
        assert config.model_copy(update={"hidden_dim": 99}).shape() != shape


def test_model_gives_a_distribution_over_tags(config):
    text, sizes = encode(config)
    said = build(config, sizes).eval()(text.gather(np.arange(4)))
    assert token_marginals(said).shape == (4, 5, len(TAGS))
    assert said.lengths_B.tolist() == [3, 1, 5, 2]
    assert said.dtype == torch.float32
    assert isinstance(said, Spans) == (config.decoder == "spans")
    assert (getattr(said, "transitions", None) is not None) == (config.decoder == "crf")
    assert torch.isfinite(log_partition(said)).all()


def test_a_sentence_is_tagged_the_same_alone(config):
    text, sizes = encode(config)
    model = stirred(build(config, sizes).eval())
    whole = model(text.gather(np.arange(4)))
    for row in range(4):
        alone = model(text.gather(np.array([row])))
        near = {"rtol": 1e-4, "atol": 1e-5}
        marginals_BTY = token_marginals(whole)[[row], : alone.time]
        torch.testing.assert_close(marginals_BTY, token_marginals(alone), **near)
        torch.testing.assert_close(log_partition(whole)[[row]], log_partition(alone), **near)


def test_building_depends_on_the_generator_alone(config):
    _, sizes = encode(config)
    assert save_weights(build(config, sizes)) == save_weights(build(config, sizes))


def test_weights_come_back_in_another_model(config):
    text, sizes = encode(config)
    batch = text.gather(np.arange(4))
    model, other = stirred(build(config, sizes).eval()), build(config, sizes, seed=1).eval()
    assert not torch.equal(token_marginals(model(batch)), token_marginals(other(batch)))
    load_weights(other, save_weights(model))
    for operation in (log_partition, token_marginals):
        assert torch.equal(operation(model(batch)), operation(other(batch)))


def test_model_learns_the_tags_of_a_few_sentences(config):
    text, sizes = encode(config)
    batch = text.gather(np.arange(4))
    model = build(config, sizes, dropout=0.1).train()
    gold_BT = torch.zeros(4, 5, dtype=torch.long)
    for row, tags in enumerate(GOLD):
        gold_BT[row, : len(tags)] = torch.from_numpy(TAGS.encode(tags)).long()
    if getattr(config, "trained", True) is False:
        pytest.skip("taken as it is: raykd does not train it")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        said = model(batch)
        loss = (log_partition(said) - score(said, gold_BT)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


def test_several_teachers_tell_what_their_mean_can(config):
    if config.kind not in TEACHERS:
        return
    assert config.offers == config.tells
    assert config.model_copy(update={"combine": "posteriors"}).offers == config.tells
    several = config.model_copy(update={"count": 2})
    assert several.offers == config.tells
    mixed = several.model_copy(update={"combine": "posteriors"})
    assert mixed.offers == ("token_marginals", "kbest")
    assert config.kind in several.title != config.title == config.kind


def test_several_members_are_one_distribution(config):
    if config.kind not in TEACHERS:
        return
    text, sizes = encode(config)
    batch, members = text.gather(np.arange(4)), [build(config, sizes, seed=seed) for seed in (0, 1)]
    for combine in ("scores", "posteriors"):
        said = Ensemble(members, combine=combine).eval()(batch)
        marginals_BTY = token_marginals(said)
        torch.testing.assert_close(marginals_BTY.sum(-1), (marginals_BTY.sum(-1) > 0.5).float())
        assert viterbi(said)[0].shape == (4, 5)


def test_pinned_teachers_are_named_by_the_weights_they_are_given(config):
    if config.kind not in TEACHERS:
        return
    pinned = config.pinned()
    assert (pinned == config) == (config.contextual is None and config.kind != "hf_token_classifier")
    assert pinned.pinned() == pinned
    text, sizes = encode(config)
    assert build(pinned, sizes)(text.gather(np.arange(4))).lengths_B.tolist() == [3, 1, 5, 2]


@pytest.mark.parametrize("kind", TEACHERS)
def test_teachers_say_what_they_offer(kind):
    assert set(TEACHERS[kind].tells) <= set(SIGNALS)
    assert {"scope", "epochs", "training"} <= set(TEACHERS[kind].model_fields)
