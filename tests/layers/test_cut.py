"""Smaller encoders cut from larger ones: what stays computes what it computed, and what goes is what added least."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from transformers import AutoModelForTokenClassification

from raykd.corpora.encoded_text import encode_text
from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.forms import SPANS
from raykd.layers.cut import FEED_FORWARD, Cut
from raykd.layers.model_config import BuildInputs
from raykd.layers.part_importance import most_important, part_importance
from raykd.layers.smaller_encoder import Parts
from raykd.students.pretrained import PretrainedStudent
from tests.teachers.checkpoints import make_checkpoint

TAGS = SPANS.tag_set(["LOC", "PER"])
INPUTS = BuildInputs(tag_set=TAGS)
SENTENCES = [["an", "bo", "abc"], ["bo"], ["jij", "an", "abc", "bo", "abcabc"]]
LAYERS, HEADS, NEURONS, SIZE = 3, 2, 32, 16
NAMES = {
    "bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "camembert": "Camembert",
    "electra": "Electra", "distilbert": "DistilBert",
}  # fmt: skip
ANY = (*NAMES.values(), "ModernBert", "DebertaV2")
"""Encoders of which layers can stay; those of `NAMES` can be narrowed too."""


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """Type of the encoder → folder of a checkpoint."""
    folder = tmp_path_factory.mktemp("encoders")
    return {kind: make_checkpoint(folder / kind, layers=LAYERS, longest=20, kind=kind) for kind in ANY}


def cut_of(path, **cut):
    torch.manual_seed(0)
    return PretrainedStudent(path=path, **cut).build(INPUTS).eval()


def batch(path):
    text = encode_text(SENTENCES, HFVocabulary.load(path))
    return text.gather(np.arange(len(SENTENCES)))


def emissions(model, path):
    with torch.inference_mode():
        return model(batch(path)).distribution.emissions_BTY


def layer_of(model, number):
    layers = next(part for part in model.modules() if isinstance(part, torch.nn.ModuleList))
    return layers[number]


def test_every_kind_that_is_narrowed_is_tested():
    assert set(NAMES) == set(FEED_FORWARD)


@pytest.mark.parametrize("kind", ANY)
def test_a_layer_left_out_is_a_layer_that_is_skipped(kind, checkpoints):
    path = checkpoints[kind]
    whole, cut = cut_of(path), cut_of(path, layers=(0, 2))
    assert (cut.depth, whole.depth) == (2, LAYERS)

    skipped = layer_of(whole, 1)
    with_attention = kind == "DebertaV2"
    skipped.forward = lambda states, *_, **__: (states, None) if with_attention else states
    torch.testing.assert_close(emissions(cut, path), emissions(whole, path), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", NAMES.values())
def test_heads_and_neurons_that_add_nothing_may_go(kind, checkpoints):
    path = checkpoints[kind]
    whole = cut_of(path)
    generator = np.random.default_rng(0)
    staying = [
        Parts([int(generator.integers(HEADS))], sorted(generator.choice(NEURONS, 20, replace=False).tolist()))
        for _ in range(LAYERS)
    ]
    narrow = cut_of(path).cut(Cut(heads=1, feed_forward=20), staying)
    for number, parts in enumerate(staying):
        layer = layer_of(whole, number)
        distil = kind == "DistilBert"
        attention = layer.get_submodule("attention.out_lin" if distil else "attention.output.dense")
        neurons = layer.get_submodule("ffn.lin2" if distil else "output.dense")
        with torch.no_grad():
            removed = [place for place in range(SIZE) if place // (SIZE // HEADS) not in parts.heads]
            attention.weight[:, removed] = 0
            neurons.weight[:, [place for place in range(NEURONS) if place not in parts.neurons]] = 0
    torch.testing.assert_close(emissions(narrow, path), emissions(whole, path), rtol=1e-4, atol=1e-4)
    importance = part_importance(whole, [batch(path)])
    assert most_important(importance, Cut(heads=1, feed_forward=20)) == staying


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_importance_is_the_mean_length_of_what_a_part_adds(kind, checkpoints):
    """Against the definition: the output of a linear layer with and without a head's or a neuron's input."""
    path, number = checkpoints[kind], 1
    model = cut_of(path)
    layer = layer_of(model, number)
    names = (
        ("attention.out_lin", "ffn.lin2")
        if kind == "DistilBert"
        else ("attention.output.dense", "output.dense")
    )
    inputs = {}
    for name in names:
        layer.get_submodule(name).register_forward_pre_hook(
            lambda _, values, name=name: inputs.update({name: values[0]})
        )
    emissions(model, path)
    inside_BP = torch.arange(inputs[names[0]].shape[1]) < batch(path).piece_lengths_B[:, None]
    parts = part_importance(model, [batch(path)])[number]
    for name, importance, size in ((names[0], parts.heads, SIZE // HEADS), (names[1], parts.neurons, 1)):
        linear, states = layer.get_submodule(name), inputs[name][inside_BP]
        for part, value in enumerate(importance):
            alone = torch.zeros_like(states)
            alone[:, part * size : (part + 1) * size] = states[:, part * size : (part + 1) * size]
            with torch.no_grad():
                added = linear(alone) - linear.bias
            assert value == pytest.approx(float(added.norm(dim=-1).mean()), rel=1e-4)


def test_importance_does_not_depend_on_batches(checkpoints):
    path = checkpoints["Bert"]
    model, text = cut_of(path), encode_text(SENTENCES, HFVocabulary.load(path))
    together = part_importance(model, [text.gather(np.arange(3))])
    several = part_importance(model, [text.gather(np.array([row])) for row in range(3)])
    for layer, same in zip(together, several, strict=True):
        assert layer.heads == pytest.approx(same.heads, rel=1e-4)
        assert layer.neurons == pytest.approx(same.neurons, rel=1e-4)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 10), min_size=4, max_size=9), st.integers(1, 4))
def test_the_most_important_parts_stay_in_their_order(values, count):
    (staying,) = most_important([Parts(values, values)], Cut(heads=count))
    assert len(staying.heads) == count
    assert staying.heads == sorted(staying.heads)
    assert staying.neurons == list(range(len(values)))
    removed = [value for place, value in enumerate(values) if place not in staying.heads]
    assert max(removed, default=0) <= min(values[place] for place in staying.heads)


def test_factorised_vectors_are_the_nearest_of_their_rank(checkpoints):
    path = checkpoints["Bert"]
    whole_VD = cut_of(path).embedding_matrix().detach()
    product = cut_of(path).cut(Cut(embedding_rank=5), []).model.get_input_embeddings()
    vectors_VD = product(torch.arange(len(whole_VD))).detach()
    singular = torch.linalg.svdvals(whole_VD.double())
    assert float((vectors_VD - whole_VD).double().square().sum()) == pytest.approx(
        float(singular[5:].square().sum()), rel=1e-4
    )
    torch.testing.assert_close(product.multiplied().weight.detach(), vectors_VD)
    assert product.weight.shape == (len(whole_VD), 5)


@pytest.mark.parametrize("kind", NAMES.values())
def test_an_architecture_builds_the_cut_again_and_a_checkpoint_the_same_function(kind, checkpoints, tmp_path):
    path, settings_of_cut = (
        checkpoints[kind],
        {"layers": (0, 2), "heads": 1, "feed_forward": 20, "embedding_rank": 5},
    )
    model = cut_of(path).cut(Cut(**settings_of_cut), [Parts([1], range(20))] * LAYERS)
    rebuilt = (
        PretrainedStudent(path="nowhere", **settings_of_cut).rebuild(model.architecture(), INPUTS).eval()
    )
    rebuilt.load_state_dict(model.state_dict())
    torch.testing.assert_close(emissions(rebuilt, path), emissions(model, path))

    model.standard_form().save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path).eval()
    pieces = {
        "input_ids": batch(path).pieces_BP[2:],
        "attention_mask": torch.ones_like(batch(path).pieces_BP[2:]),
    }
    with torch.inference_mode():
        torch.testing.assert_close(loaded(**pieces).logits, model.model(**pieces).logits)
    assert sum(p.numel() for p in model.parameters()) < sum(p.numel() for p in loaded.parameters())


def test_a_form_that_no_configuration_describes_is_refused(checkpoints):
    """The lowest layer of a ModernBERT lacks a norm that all others have."""
    with pytest.raises(StoreError, match=r"lost a layer that an encoder of its type must have.*keep layer 0"):
        cut_of(checkpoints["ModernBert"], layers=(1, 2)).standard_form()
    cut_of(checkpoints["ModernBert"], layers=(0, 2)).standard_form()


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (
            {"layers": (0, 3)},
            r"has no layer 3: it has 3 layers, from 0; set student.layers to numbers from 0 to 2",
        ),
        (
            {"heads": 2},
            r"has 2 attention heads, and a cut to 2 leaves nothing out; set student.heads below 2",
        ),
        ({"feed_forward": 40}, r"has 32 neurons, and a cut to 40 leaves nothing out"),
        ({"embedding_rank": 16}, r"has 16 components of a piece vector, and a cut to 16 leaves nothing out"),
    ],
)
def test_a_cut_that_leaves_nothing_or_too_much_is_refused(checkpoints, cut, message):
    with pytest.raises(StoreError, match=message):
        PretrainedStudent(path=checkpoints["Bert"], **cut).refuse_unreadable(["en"])
    with pytest.raises(StoreError, match=message):
        cut_of(checkpoints["Bert"], **cut)


def test_layers_whose_heads_are_not_known_are_not_narrowed(checkpoints):
    with pytest.raises(
        StoreError, match=r"is an encoder of type modernbert, in which heads and neurons cannot be"
    ):
        PretrainedStudent(path=checkpoints["ModernBert"], heads=1).refuse_unreadable(["en"])


@pytest.mark.parametrize("layers", [(2, 0), (1, 1)])
def test_layers_are_written_in_their_order(layers):
    with pytest.raises(ValidationError, match=r"a cut keeps the order of the layers, so write \["):
        PretrainedStudent(path="x", layers=layers)


def test_a_frozen_layer_is_one_of_those_that_stay(checkpoints):
    path = checkpoints["Bert"]
    model = cut_of(path, layers=(0, 2), freeze=("embeddings", 2))
    frozen = {id(parameter) for parameter in model.fixed_parameters()}
    assert frozen >= {id(p) for p in layer_of(model, 1).parameters()}
    with pytest.raises(StoreError, match=r"has no layer 3 to freeze"):
        cut_of(path, layers=(0, 2), freeze=(3,))


def test_the_sizes_of_a_cut_are_its_shape(checkpoints):
    student = PretrainedStudent(path=checkpoints["Bert"], layers=(0, 2), heads=1)
    assert student.shape() == PretrainedStudent(path=checkpoints["Bert"], layers=(1, 2), heads=1).shape()
    assert student.shape() != PretrainedStudent(path=checkpoints["Bert"], layers=(0, 2)).shape()
