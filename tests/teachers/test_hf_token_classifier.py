import json
import re

import pytest
import torch
import transformers
from pydantic import ValidationError
from transformers import AutoModelForTokenClassification, AutoTokenizer

from raykd.errors import ExportError, StoreError
from raykd.forms import FLAT, SPANS, UTTERANCES
from raykd.layers.checkpoint import labels_every_piece, weights_checksum
from raykd.layers.dropout import step_masks
from raykd.layers.label_map import match_labels
from raykd.layers.model import load_weights, save_weights
from raykd.layers.model_config import BuildInputs
from raykd.layers.piece_labels import Words, piece_labels
from raykd.layers.transition_biases import BIASES_FILE, TransitionBiases
from raykd.structures import token_marginals
from raykd.teachers import HFTokenClassifierTeacher
from tests.layers.batches import make_batch
from tests.layers.graphs import assert_same_as, session_of
from tests.teachers.checkpoints import ARCHITECTURES, IOB2, SENTENCEPIECES, UNTRACED, make_checkpoint

NER = SPANS.tag_set(["LOC", "PER"])
SENTENCES = (("abc", "an", "zz", "jij"), ("bo",), ("an", "abcabc"))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return make_checkpoint(tmp_path_factory.mktemp("tiny"))


def batch_for(teacher, sentences=SENTENCES):
    vocabulary = teacher.tokenizer.build([])
    return make_batch(range(len(sentences)), vocabulary=vocabulary, characters=False, sentences=sentences)


def chain_of(model, batch):
    return model(batch).distribution


def direct_logits(checkpoint, words):
    """A sentence through Transformers alone: logits at each word's first piece [1, T, L]."""
    tokens = AutoTokenizer.from_pretrained(checkpoint)(
        list(words), is_split_into_words=True, return_tensors="pt"
    )
    with torch.no_grad():
        logits = AutoModelForTokenClassification.from_pretrained(checkpoint).eval()(**tokens).logits
    word_of_piece = tokens.word_ids(0)
    return logits[:, [word_of_piece.index(i) for i in range(len(words))]]


def test_emissions_are_those_of_transformers_at_first_pieces(checkpoint):
    teacher = HFTokenClassifierTeacher(path=checkpoint)
    chain = chain_of(teacher.build(BuildInputs(tag_set=NER)).eval(), batch_for(teacher))
    labels = match_labels(IOB2, NER, {}, checkpoint=checkpoint)
    assert (chain.transitions, chain.start, chain.end) == (None, None, None)
    for b, words in enumerate(SENTENCES):
        expected = labels.emissions(direct_logits(checkpoint, words), torch.tensor([len(words)]))
        torch.testing.assert_close(chain.emissions_BTY[b, : len(words)].exp(), expected[0].exp())


def test_emissions_are_log_probabilities(checkpoint):
    teacher = HFTokenClassifierTeacher(path=checkpoint)
    chain = chain_of(teacher.build(BuildInputs(tag_set=NER)).eval(), batch_for(teacher))
    torch.testing.assert_close(
        chain.emissions_BTY.exp()[chain.mask_BT], token_marginals(chain)[chain.mask_BT]
    )


def test_sentences_longer_than_the_model_reads_are_tagged_throughout(checkpoint):
    """16 pieces with [CLS] and [SEP] are read at once; the batch has 42 and a short sentence."""
    teacher = HFTokenClassifierTeacher(path=checkpoint)
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    long = tuple("abcdefghij"[i % 10] for i in range(40))
    both = chain_of(model, batch_for(teacher, (long, ("an", "abc"))))
    single = chain_of(model, batch_for(teacher, (("an", "abc"),)))
    assert both.emissions_BTY.shape == (2, 40, len(NER))
    torch.testing.assert_close(both.emissions_BTY[1, :2], single.emissions_BTY[0])
    torch.testing.assert_close(both.emissions_BTY[0].exp().sum(-1), torch.ones(40))
    # The first window holds 14 words; words before its cut's context see exactly it.
    window = chain_of(model, batch_for(teacher, (long[:14],)))
    torch.testing.assert_close(both.emissions_BTY[0, :6], window.emissions_BTY[0, :6])


def test_intents_are_read_at_the_piece_before_the_sentence(checkpoint):
    tags = UTTERANCES.tag_set(["city", "intent:fare", "intent:flight"])
    teacher = HFTokenClassifierTeacher(path=checkpoint, fine_tune=True)
    model = teacher.build(BuildInputs(tag_set=tags)).eval()
    batch = batch_for(teacher, tuple(("<utterance>", *words) for words in SENTENCES))
    assert batch.first_BT[:, 0].tolist() == [0, 0, 0]
    chain = chain_of(model, batch)
    first_Y, later_Y = tags.allowed_places()
    marginals_BTY = token_marginals(chain)
    torch.testing.assert_close(marginals_BTY[:, 0, first_Y].sum(1), torch.ones(3))
    torch.testing.assert_close(marginals_BTY[0, 1:][:, later_Y].sum(1), torch.ones(4))
    assert_same_as(model, session_of(model.to_onnx()), batch)


def test_fine_tuning_gets_a_new_head_over_the_corpus_tags(checkpoint):
    teacher = HFTokenClassifierTeacher(path=checkpoint, fine_tune=True)
    torch.manual_seed(0)
    model = teacher.build(BuildInputs(tag_set=NER))
    chain = chain_of(model, batch_for(teacher))
    assert teacher.trained
    assert chain.emissions_BTY.shape[-1] == len(NER)
    chain.emissions_BTY[chain.mask_BT].sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    torch.manual_seed(1)
    reloaded = teacher.build(BuildInputs(tag_set=NER))
    load_weights(reloaded, save_weights(model))
    actual, expected = (
        chain_of(network.eval(), batch_for(teacher)).emissions_BTY for network in (reloaded, model)
    )
    torch.testing.assert_close(actual, expected)


def test_fine_tuning_takes_a_checkpoint_without_a_head(tmp_path):
    teacher = HFTokenClassifierTeacher(path=make_checkpoint(tmp_path, head=False), fine_tune=True)
    chain = chain_of(teacher.build(BuildInputs(tag_set=NER)), batch_for(teacher))
    assert chain.emissions_BTY.shape[-1] == len(NER)


def test_a_checkpoint_without_a_head_is_refused_as_it_is(tmp_path):
    with pytest.raises(StoreError, match=r"no trained token-classification head .*; set fine_tune: true"):
        HFTokenClassifierTeacher(path=make_checkpoint(tmp_path, head=False)).build(BuildInputs(tag_set=NER))


def test_nameless_labels_are_refused_until_named(tmp_path):
    path = make_checkpoint(tmp_path, labels=None)
    with pytest.raises(StoreError, match=r"no names \(LABEL_0"):
        HFTokenClassifierTeacher(path=path).build(BuildInputs(tag_set=NER))
    names = {f"LABEL_{i}": name for i, name in enumerate(IOB2)}
    HFTokenClassifierTeacher(path=path, labels=names).build(BuildInputs(tag_set=NER))


def test_no_checkpoint_is_refused_by_name():
    with pytest.raises(StoreError, match=r"no_such_owner/name: is not a folder, and was not found"):
        HFTokenClassifierTeacher(path="no_such_owner/name").build(BuildInputs(tag_set=NER))


def test_a_folder_that_is_written_otherwise_is_not_asked_for_on_the_hub(tmp_path, monkeypatch):
    make_checkpoint(tmp_path / "encoders" / "teacher")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", None)
    for path, message in (
        ("encoders/techer", "encoders/techer: is not a folder; did you mean encoders/teacher?"),
        ("encoders/bert", "is not a folder; encoders has teacher; give the folder"),
        ("/no/such/folder", "/no/such/folder: is not a folder; give the folder of a checkpoint"),
        ("./bert", "is not a folder; . has encoders"),
        ("a/b/c", "a/b/c: is not a folder"),
    ):
        with pytest.raises(StoreError, match=re.escape(message)):
            HFTokenClassifierTeacher(path=path).build(BuildInputs(tag_set=NER))


def test_checksum_is_of_the_content(tmp_path):
    first, second = (make_checkpoint(tmp_path / name) for name in ("a", "b"))
    different = make_checkpoint(tmp_path / "c", seed=1)
    assert weights_checksum(first) == weights_checksum(second) != weights_checksum(different)
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    config["id2label"]["0"] = "OTHER"
    (tmp_path / "b" / "config.json").write_text(json.dumps(config))
    assert weights_checksum(second) != weights_checksum(first)


def test_a_folder_without_weights_has_no_checksum(tmp_path):
    with pytest.raises(StoreError, match="holds no weights"):
        weights_checksum(str(tmp_path))


def test_a_checkpoint_in_pickle_is_refused_unread(tmp_path):
    path = make_checkpoint(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    for read in (
        weights_checksum,
        lambda path: HFTokenClassifierTeacher(path=path).build(BuildInputs(tag_set=NER)),
    ):
        with pytest.raises(StoreError, match=r"no weights in safetensors; .* pytorch_model\.bin, a pickle"):
            read(path)


def test_code_that_comes_with_a_checkpoint_is_not_run(tmp_path):
    path, ran = make_checkpoint(tmp_path), tmp_path / "ran"
    (tmp_path / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    config = json.loads((tmp_path / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Own", "AutoModelForTokenClassification": "own.Own"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(StoreError, match="cannot be loaded"):
        HFTokenClassifierTeacher(path=path).build(BuildInputs(tag_set=NER))
    assert not ran.exists()


def test_a_pinned_checkpoint_that_changed_is_refused(tmp_path):
    teacher = HFTokenClassifierTeacher(path=make_checkpoint(tmp_path)).pinned()
    teacher.build(BuildInputs(tag_set=NER))
    make_checkpoint(tmp_path, seed=1)
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        teacher.build(BuildInputs(tag_set=NER))


CLASSES = FLAT.tag_set(["bad", "good"])


@pytest.mark.parametrize("fine_tune", [True, False])
def test_a_sentence_gets_one_label_from_the_first_piece_of_all(tmp_path, fine_tune):
    path = make_checkpoint(tmp_path, labels=("good", "bad"))
    teacher = HFTokenClassifierTeacher(path=path, fine_tune=fine_tune)
    torch.manual_seed(0)
    model = teacher.build(BuildInputs(tag_set=CLASSES, unit="sentence")).eval()
    chain = chain_of(model, batch_for(teacher))
    assert chain.emissions_BTY.shape == (3, 1, 2)
    assert chain.lengths_B.tolist() == [1, 1, 1]
    labels = [model.model.config.id2label[i] for i in range(2)]
    order = [labels.index(name) for name in CLASSES.tags]
    assert order == ([0, 1] if fine_tune else [1, 0])
    for b, words in enumerate(SENTENCES):
        pieces = AutoTokenizer.from_pretrained(path)(
            list(words), is_split_into_words=True, return_tensors="pt"
        )
        logits_L = model.model(**pieces).logits[0, 0]
        torch.testing.assert_close(chain.emissions_BTY[b, 0], logits_L.log_softmax(-1)[order])


def test_hidden_states_are_those_of_transformers(tmp_path):
    teacher = HFTokenClassifierTeacher(path=make_checkpoint(tmp_path, layers=2))
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    states = model(batch_for(teacher), layers=(0, -1, 1)).hidden
    bare = AutoModelForTokenClassification.from_pretrained(teacher.path).eval()
    for b, words in enumerate(SENTENCES):
        pieces = AutoTokenizer.from_pretrained(teacher.path)(
            list(words), is_split_into_words=True, return_tensors="pt"
        )
        expected = bare(**pieces, output_hidden_states=True).hidden_states
        firsts = [pieces.word_ids().index(word) for word in range(len(words))]
        for layer, states_BTD in states.items():
            torch.testing.assert_close(states_BTD[b, : len(words)], expected[layer][0][firsts])
    with pytest.raises(ValueError, match="has no layer 3"):
        teacher.hidden_size(3)


@pytest.mark.parametrize("layers", [(), (0,), (2, 1)])
def test_long_sentences_are_read_in_the_same_windows_with_hidden_states(tmp_path, layers):
    """16 pieces are read at once; here are 42, beside a short sentence: states and labels are of one reading."""
    teacher = HFTokenClassifierTeacher(path=make_checkpoint(tmp_path, layers=2))
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    long = tuple("abcdefghij"[i % 10] for i in range(40))
    batch = batch_for(teacher, (long, ("an", "abc")))
    both = model(batch, layers=layers)
    assert torch.equal(both.distribution.emissions_BTY, chain_of(model, batch).emissions_BTY)
    for layer in layers:
        states_BTD = both.hidden[layer]
        assert states_BTD.shape == (2, 40, teacher.hidden_size(layer))
        short = model(batch_for(teacher, (("an", "abc"),)), layers=(layer,)).hidden[layer]
        torch.testing.assert_close(states_BTD[1, : short.shape[1]], short[0])
        # The first window holds 14 words; pieces before its cut's context see exactly it.
        window = model(batch_for(teacher, (long[:14],)), layers=(layer,)).hidden[layer]
        torch.testing.assert_close(states_BTD[0, :6], window[0, :6])
    if 2 in layers:
        labels = match_labels(IOB2, NER, {}, checkpoint="x")
        expected_BTY = labels.emissions(model.model.classifier(both.hidden[2]), batch.lengths_B)
        inside_BT = both.distribution.mask_BT
        torch.testing.assert_close(
            both.distribution.emissions_BTY.exp()[inside_BT], expected_BTY.exp()[inside_BT]
        )


@pytest.mark.parametrize("names", [{}, {"PER": "LOC", "town": "PER", "*": "O"}])
def test_its_onnx_graph_gives_the_same_labels(tmp_path, names):
    """With IOB2 labels, as published: BIOES tags are read from two words and may be impossible."""
    labels = (*IOB2, "B-town", "I-town", "B-date", "I-date") if names else IOB2
    path = make_checkpoint(tmp_path / "tiny", labels=labels, layers=2)
    teacher = HFTokenClassifierTeacher(path=path, labels=names)
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    assert model.piece_limit == 16
    session = session_of(model.to_onnx())
    for sentences in (SENTENCES, (("bo",),), (("an",) * 14, ("jij", "bo"), ("a",))):
        assert_same_as(model, session, batch_for(teacher, sentences))


def test_a_model_that_cannot_be_traced_is_refused(checkpoint, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("no such operator\nmore of it")

    monkeypatch.setattr(torch.onnx, "export", fails)
    model = HFTokenClassifierTeacher(path=checkpoint).build(BuildInputs(tag_set=NER))
    with pytest.raises(ExportError, match=r"cannot export this model \(no such operator\)"):
        model.to_onnx()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            kind,
            marks=pytest.mark.skipif(
                not hasattr(transformers, f"{kind}Config"), reason=f"Transformers here has no {kind}"
            ),
        )
        for kind in ARCHITECTURES
    ],
)
def architecture(request, tmp_path_factory):
    """The name of an architecture, and the folder of a checkpoint."""
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, make_checkpoint(folder, layers=2, kind=request.param)


def test_other_architectures_label_as_published(architecture):
    _, path = architecture
    teacher = HFTokenClassifierTeacher(path=path)
    teacher.refuse_unreadable(["en"])
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    assert model.piece_limit == 16
    batch = batch_for(teacher)
    output = model(batch, layers=(0, 1, -1), pieces=(2,))
    bare = AutoModelForTokenClassification.from_pretrained(path).eval()
    tokenizer, labels = AutoTokenizer.from_pretrained(path), match_labels(IOB2, NER, {}, checkpoint=path)
    for b, words in enumerate(SENTENCES):
        pieces = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
        assert torch.equal(batch.pieces_BP[b, : batch.piece_lengths_B[b]], pieces["input_ids"][0])
        inputs = {name: pieces[name] for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            expected = bare(**inputs, output_hidden_states=True)
        firsts = [pieces.word_ids().index(word) for word in range(len(words))]
        emissions_TY = labels.emissions(expected.logits[:, firsts], torch.tensor([len(words)]))[0]
        torch.testing.assert_close(
            output.distribution.emissions_BTY[b, : len(words)].exp(), emissions_TY.exp(), rtol=1e-4, atol=1e-5
        )
        for layer, states_BTD in output.hidden.items():
            torch.testing.assert_close(
                states_BTD[b, : len(words)], expected.hidden_states[layer][0][firsts], rtol=1e-4, atol=1e-5
            )
    assert output.pieces[2].shape[-1] == teacher.hidden_size(2) == teacher.embedding_dim == 16


def test_other_architectures_are_fine_tuned_alike_by_one_worker_and_two(architecture):
    _, path = architecture
    teacher = HFTokenClassifierTeacher(path=path, fine_tune=True, freeze=("embeddings", 1))
    model = teacher.build(BuildInputs(tag_set=NER)).train()
    with step_masks(0, torch.arange(3)):
        whole = chain_of(model, batch_for(teacher)).emissions_BTY
    for row, words in enumerate(SENTENCES):
        with step_masks(0, torch.tensor([row])):
            single_BTY = chain_of(model, batch_for(teacher, (words,))).emissions_BTY
        torch.testing.assert_close(single_BTY[0], whole[row, : len(words)], rtol=1e-4, atol=1e-4)
    with step_masks(1, torch.arange(3)):
        assert not torch.allclose(chain_of(model, batch_for(teacher)).emissions_BTY, whole)
    whole[..., 0].sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert all(model.layer_groups().values())
    rebuilt = teacher.rebuild(model.architecture(), BuildInputs(tag_set=NER))
    load_weights(rebuilt, save_weights(model))
    expected_BTY = chain_of(model.eval(), batch_for(teacher)).emissions_BTY
    assert torch.equal(chain_of(rebuilt.eval(), batch_for(teacher)).emissions_BTY, expected_BTY)


@pytest.mark.parametrize("settings", [{"vocabulary": "pruned"}, {"precision": "bf16"}])
def test_other_architectures_give_the_same_with_fewer_pieces_and_nearly_with_fewer_bits(
    architecture, settings
):
    chains = []
    for changes in ({}, settings):
        teacher = HFTokenClassifierTeacher(path=architecture[1], fine_tune=True, **changes)
        vocabulary = teacher.tokenizer.build(sorted({word for words in SENTENCES for word in words}))
        torch.manual_seed(0)
        model = teacher.build(BuildInputs(tag_set=NER, kept_pieces=vocabulary.checkpoint_ids)).eval()
        batch = make_batch(range(3), vocabulary=vocabulary, characters=False, sentences=SENTENCES)
        chains.append(chain_of(model, batch))
    exact_BTY, other_BTY = (chain.emissions_BTY[chain.mask_BT].softmax(-1) for chain in chains)
    torch.testing.assert_close(
        other_BTY, exact_BTY, rtol=0, atol=0.1 if settings.get("precision") == "bf16" else 1e-6
    )


@pytest.mark.parametrize("fine_tune", [False, True])
def test_graphs_of_other_architectures_give_the_same_labels(architecture, fine_tune):
    teacher = HFTokenClassifierTeacher(path=architecture[1], fine_tune=fine_tune)
    model = teacher.build(BuildInputs(tag_set=NER)).eval()
    if architecture[0] in UNTRACED:
        with pytest.raises(ExportError, match=r"cannot export this model.*data-dependent"):
            model.to_onnx()
        return
    assert_same_as(model, session_of(model.to_onnx()), batch_for(teacher))


@pytest.mark.parametrize("kind", ["Bert", "XLMRoberta"])
@pytest.mark.parametrize("labelled_pieces", [None, "first"])
def test_checkpoints_with_labels_for_every_piece(tmp_path, labelled_pieces, kind):
    """A guess, since BIOES at first pieces looks the same; exported, it says so itself."""
    path = make_checkpoint(tmp_path, labels=NER.tags, kind=kind)
    teacher = HFTokenClassifierTeacher(path=path, labelled_pieces=labelled_pieces)
    reads_every_piece = labelled_pieces is None
    assert teacher.pinned().labelled_pieces == (labelled_pieces or "every")
    assert teacher.has_transitions == reads_every_piece
    model, batch = teacher.build(BuildInputs(tag_set=NER)).eval(), batch_for(teacher)
    logits_BPL, _, _ = model.read_states(batch, (), (), head=len(NER))
    chain = chain_of(model, batch)
    if reads_every_piece:
        # XLM-R's tokenizer has a piece for a space; `zz` is that and an unknown piece.
        space = SENTENCEPIECES[kind].index("<unk>") + 1 if kind in SENTENCEPIECES else -1
        assert bool((batch.pieces_BP == space).any()) == (kind in SENTENCEPIECES)
        end_B = batch.piece_lengths_B - 1
        words = Words(batch.first_BT, end_B, batch.lengths_B, batch.pieces_BP == space)
        labels = piece_labels(match_labels(NER.tags, NER, {}, checkpoint=path), NER, TransitionBiases())
        expected_BTY = labels.emissions(logits_BPL, words)
        assert torch.equal(chain.transitions, NER.legal().transitions_YY)
        assert ((model.left_out(batch) > 0) & (model.left_out(batch) < 1)).any()
    else:
        expected_BTY = torch.log_softmax(logits_BPL.take_along_dim(batch.first_BT[..., None], 1), -1)
        assert chain.transitions is None
        assert model.left_out(batch) is None
    torch.testing.assert_close(chain.emissions_BTY[chain.mask_BT], expected_BTY[chain.mask_BT])
    assert_same_as(model, session_of(model.to_onnx()), batch)
    exported = tmp_path / "exported"
    model.model.save_pretrained(exported)
    assert labels_every_piece(str(exported)) == (reads_every_piece, True)
    rebuilt = teacher.rebuild(model.architecture(), BuildInputs(tag_set=NER))
    load_weights(rebuilt, save_weights(model))
    assert torch.equal(chain_of(rebuilt.eval(), batch).emissions_BTY, chain.emissions_BTY)


def test_the_privacy_filter_labels_every_piece_and_has_operating_points(tmp_path):
    names = ("O", *(f"{letter}-{x}" for x in ("private_person", "private_date") for letter in "BIES"))
    path = make_checkpoint(tmp_path, labels=names, kind="OpenAIPrivacyFilter")
    biases = {"transition_bias_background_to_start": 2.0, "transition_bias_inside_to_end": -1.0}
    points = {"default": {"biases": {}}, "recall": {"biases": biases}}
    (tmp_path / BIASES_FILE).write_text(json.dumps({"operating_points": points}))
    settings = {"path": path, "labels": {"private_person": "PER", "private_date": "LOC"}}
    default, recall = (
        HFTokenClassifierTeacher(**settings, operating_point=point)
        for point in ("default", {"background_to_start": 2.0, "inside_to_end": -1.0})
    )
    from_file = HFTokenClassifierTeacher(**settings, operating_point="recall")
    chains = [
        chain_of(teacher.build(BuildInputs(tag_set=NER)).eval(), batch_for(teacher))
        for teacher in (default, recall, from_file)
    ]
    place = {tag: NER.index(tag) for tag in NER.tags}
    added_YY = chains[1].transitions - chains[0].transitions
    assert added_YY[place["O"], place["B-PER"]] == added_YY[place["O"], place["S-LOC"]] == 2
    assert added_YY[place["B-PER"], place["E-PER"]] == added_YY[place["I-LOC"], place["E-LOC"]] == -1
    assert added_YY[place["O"], place["O"]] == 0
    assert torch.equal(chains[1].transitions, chains[2].transitions)
    assert torch.equal(chains[1].emissions_BTY, chains[2].emissions_BTY)
    checksum = from_file.pinned().checksum
    (tmp_path / BIASES_FILE).write_text(json.dumps({"operating_points": {"recall": {"biases": {}}}}))
    assert from_file.pinned().checksum != checksum


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fine_tune": True, "labelled_pieces": "every"}, "a new head labels words at their first pieces"),
        (
            {"fine_tune": True, "operating_point": "recall"},
            "an operating point is for a checkpoint as published",
        ),
        ({"labelled_pieces": "first", "operating_point": "recall"}, "an operating point is for"),
    ],
)
def test_settings_of_pieces_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValidationError, match=message):
        HFTokenClassifierTeacher(path="x", **settings)


def test_biases_of_labels_that_do_not_mark_ends_are_refused(tmp_path):
    teacher = HFTokenClassifierTeacher(
        path=make_checkpoint(tmp_path), labelled_pieces="every", operating_point={"background_stay": 1}
    )
    with pytest.raises(StoreError, match=r"do not mark both ends of a span.*operating_point"):
        teacher.build(BuildInputs(tag_set=NER))


def test_attention_is_read_or_refused_before_anything_runs(architecture):
    kind, path = architecture
    teacher = HFTokenClassifierTeacher(path=path)
    model, batch = teacher.build(BuildInputs(tag_set=NER)).eval(), batch_for(teacher)
    problems = {"DebertaV2": "has no layers named as those of queries and keys"}
    problems |= dict.fromkeys(
        ("ModernBert", "EuroBert", "OpenAIPrivacyFilter"), "rotates queries and keys by position"
    )
    if kind not in problems:
        teacher.refuse_hidden_attention()
        assert model(batch, attention=(1, 2)).attention[2].shape == (3, 2, *[batch.pieces_BP.shape[1]] * 2)
        return
    for refuse in (teacher.refuse_hidden_attention, lambda: model(batch, attention=(1,))):
        with pytest.raises(StoreError, match=rf"{problems[kind]}.*; omit the objective 'attention'"):
            refuse()


def test_a_limit_that_no_tokenizer_states_is_that_of_the_configuration(tmp_path):
    """As of DeBERTa-v3, whose positions are relative."""
    path = make_checkpoint(tmp_path, kind="DebertaV2", longest=24)
    file = tmp_path / "tokenizer_config.json"
    settings = json.loads(file.read_text())
    del settings["model_max_length"]
    file.write_text(json.dumps(settings))
    assert HFTokenClassifierTeacher(path=path).build(BuildInputs(tag_set=NER)).piece_limit == 24
