"""Pretraining: text without labels becomes an encoder that Transformers reads."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertForMaskedLM, PreTrainedTokenizerFast

from raykd.corpora.batching import sample_by_language
from raykd.errors import ExportError
from raykd.recipes.recipe import Recipe
from raykd.recipes.recipe_faults import recipe_faults
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.store import Storage
from raykd.training.data import encoded_part, training_data
from raykd.training.load import load_tagger
from raykd.training.model_folder import build_model
from raykd.training.prepare import prepare
from raykd.training.transformers_checkpoint import export_checkpoint
from tests.training.small import executed, student_of

NOUNS = ("dog", "cat", "tree", "river", "stone")
VERBS = ("sees", "likes", "finds")
STUDENT = {
    "kind": "encoder", "embedding_dim": 16, "layers": 2, "heads": 2, "positions": 16,
    "vocabulary": {"kind": "bert", "size": 200},
}  # fmt: skip


def text(draw, count):
    """A grammar learnable by a language model."""
    rows = (
        ["the", draw.choice(NOUNS), draw.choice(VERBS), "the", draw.choice(NOUNS), "."] for _ in range(count)
    )
    return "".join(" ".join(row) + "\n" for row in rows)


def pretraining(root, **changes):
    tree = {
        "task": "masked_lm",
        "corpus": {
            "source": "text", "root": str(root), "languages": ("en", "xx"), "train": "{lang}-train.txt",
            "dev": "{lang}-dev.txt", "test": "{lang}-test.txt", "duplicates": "keep", "overlaps": "keep",
        },
        "teachers": {"kind": "none"},
        "student": STUDENT,
        "objective": {"kind": "gold"},
        "schedule": {"epochs": 6},
        "training": {"batch_tokens": 100, "learning_rate": 1e-2, "loss_average": "token", "dropout": 0.1},
    }  # fmt: skip
    return Recipe.model_validate({**tree, **changes})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("text"))


def write_files(root):
    draw = np.random.default_rng(0)
    for language in ("en", "xx"):
        for part, count in (("train", 60), ("dev", 20), ("test", 20)):
            (root / f"{language}-{part}.txt").write_text(text(draw, count))
    return root


@pytest.fixture(scope="module")
def pretrained(root, tmp_path_factory):
    """The store, the run and its result."""
    ready = prepare(pretraining(root), Storage(str(tmp_path_factory.mktemp("store"))))
    assert not ready.teachers
    run = student_of(ready, pretraining(root))
    return ready, run, executed(ready, run)


def test_perplexity_falls_and_the_score_is_made_of_it(pretrained):
    ready, run, result = pretrained
    losses = [epoch["loss"] for epoch in result.epochs]
    assert losses[-1] < losses[0]
    score = result.scores.get("dev")
    perplexities = score.beside["perplexity"].by_language
    pieces = load_tagger(ready.storage.child(*run.folder).uri).vocabulary.pieces.size
    assert set(perplexities) == {"en", "xx"}
    for language, perplexity in perplexities.items():
        assert 1 < perplexity < pieces / 3, "better than any piece for any other"
        assert score.by_language[language] == pytest.approx(1 - math.log(perplexity) / math.log(pieces))


def test_perplexity_is_that_of_the_model_in_transformers(pretrained):
    """The masked pieces of dev, read by the plain class with the plain loss."""
    ready, run, result = pretrained
    part = encoded_part(ready.storage.uri, run, "dev")
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    model = tagger.model.model.eval()
    by_language: dict[str, list[float]] = {}
    for row, language in enumerate(part.languages):
        batch, hidden = part.text.gather(np.array([row])), part.text.hidden(np.array([row]))
        with torch.inference_mode():
            logits_PV = model(input_ids=batch.pieces_BP).logits[0]
        scores_MV = logits_PV[batch.first_BT[0]].log_softmax(1)
        hidden_scores = scores_MV.gather(1, torch.from_numpy(hidden[0])[:, None])
        by_language.setdefault(language, []).extend(hidden_scores[:, 0].tolist())
    for language, logs in by_language.items():
        expected = math.exp(-np.mean(logs))
        assert result.scores.get("dev").beside["perplexity"].by_language[language] == pytest.approx(
            expected, rel=1e-4
        )


def test_the_checkpoint_is_read_by_transformers_alone(pretrained, tmp_path):
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

    ready, run, _ = pretrained
    folder = ready.storage.child(*run.folder)
    sizes = export_checkpoint(folder, Storage(str(tmp_path / "out")))
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(sizes)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()
    tagger = load_tagger(folder.uri)
    words = ["the", "dog", "sees", "the", "cat", "."]
    batch_of_raykd = tagger.vocabulary.encode([words]).gather(np.array([0]))
    read = tokenizer(" ".join(words), return_tensors="pt")
    assert torch.equal(read["input_ids"], batch_of_raykd.pieces_BP)
    assert tokenizer.mask_token_id == tagger.vocabulary.pieces.special.mask
    with torch.inference_mode():
        torch.testing.assert_close(
            model(**read).logits[0, 1:7], tagger.model.eval()(batch_of_raykd).distribution.emissions_BTY[0]
        )
        hidden = AutoModel.from_pretrained(tmp_path / "out").eval()(**read).last_hidden_state
    assert hidden.shape == (1, 8, 16)


def test_byte_pairs_and_roberta(root, tmp_path):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    student = {**STUDENT, "architecture": "roberta", "vocabulary": {"kind": "roberta", "size": 320}}
    run_recipe = pretraining(root, student=student, schedule={"epochs": 1})
    assert recipe_faults(run_recipe) == []
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1
    folder = ready.storage.child(*run.folder)
    export_checkpoint(folder, Storage(str(tmp_path / "out")))
    tagger = load_tagger(folder.uri)
    batch = tagger.vocabulary.encode([["the", "dog", "sees"]]).gather(np.array([0]))
    read = AutoTokenizer.from_pretrained(tmp_path / "out")("the dog sees", return_tensors="pt")
    assert torch.equal(read["input_ids"], batch.pieces_BP)
    with torch.inference_mode():
        checkpoint = AutoModelForMaskedLM.from_pretrained(tmp_path / "out").eval()(**read).logits
        torch.testing.assert_close(
            checkpoint.gather(1, batch.first_BT[:, :, None].expand(-1, -1, checkpoint.shape[2])),
            tagger.model.eval()(batch).distribution.emissions_BTY,
        )


@pytest.fixture(scope="module")
def checkpoint(pretrained, tmp_path_factory):
    """The encoder as a checkpoint."""
    ready, run, _ = pretrained
    folder = tmp_path_factory.mktemp("checkpoint")
    export_checkpoint(ready.storage.child(*run.folder), Storage(str(folder)))
    return folder


def test_a_checkpoint_is_pretrained_on_from_where_it_stands(root, pretrained, checkpoint, tmp_path):
    ready, run, before = pretrained
    student = {"kind": "pretrained_encoder", "path": str(checkpoint), "freeze": ("embeddings",)}
    run_recipe = pretraining(root, student=student, schedule={"epochs": 1})
    assert recipe_faults(run_recipe) == []
    second_preparation = prepare(run_recipe, Storage(str(tmp_path / "store")))
    on = student_of(second_preparation, run_recipe)
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    batch = encoded_part(second_preparation.storage.uri, on, "dev").text.gather(np.arange(6))
    with torch.inference_mode():
        torch.testing.assert_close(
            build_model(second_preparation.storage, on).eval()(batch).distribution.emissions_BTY,
            tagger.model.eval()(batch).distribution.emissions_BTY,
        )
    after = executed(second_preparation, on)
    assert after.epochs[0]["loss"] < before.epochs[0]["loss"] * 0.8, "it does not begin at the beginning"
    export_checkpoint(second_preparation.storage.child(*on.folder), Storage(str(tmp_path / "out")))
    first, second = (BertForMaskedLM.from_pretrained(folder) for folder in (checkpoint, tmp_path / "out"))
    embeddings = [model.bert.embeddings.word_embeddings.weight for model in (first, second)]
    layers = [model.bert.encoder.layer[0].output.dense.weight for model in (first, second)]
    assert torch.equal(*embeddings), "frozen"
    assert not torch.equal(*layers), "trained"


def test_a_bare_encoder_is_pretrained_on_with_a_new_head_and_fewer_pieces(root, checkpoint, tmp_path):
    BertForMaskedLM.from_pretrained(checkpoint).bert.save_pretrained(tmp_path / "bare")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(checkpoint / name, tmp_path / "bare" / name)
    student = {"kind": "pretrained_encoder", "path": str(tmp_path / "bare"), "vocabulary": "pruned"}
    few = {**pretraining(root).corpus.model_dump(), "cap": 5}
    run_recipe = pretraining(root, corpus=few, student=student, schedule={"epochs": 1})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1
    model = load_tagger(ready.storage.child(*run.folder).uri).model.model
    whole = BertForMaskedLM.from_pretrained(checkpoint)
    assert model.config.vocab_size < whole.config.vocab_size
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_long_sentences_are_read_in_windows(pretrained):
    ready, run, _ = pretrained
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    batch = tagger.vocabulary.encode([["the"] * 40, ["dog"]]).gather(np.array([0, 1]))
    assert batch.pieces_BP.shape[1] > tagger.model.piece_limit
    with torch.inference_mode():
        output = tagger.model.eval()(batch, layers=(0, -1))
    assert output.distribution.emissions_BTY.shape[:2] == (2, 40)
    assert output.hidden[-1].shape == (2, 40, 16)
    assert torch.isfinite(output.distribution.emissions_BTY).all()


@pytest.mark.parametrize("architecture", ["bert", "roberta"])
def test_pieces_of_a_checkpoint_whose_padding_has_another_id(root, tmp_path, architecture):
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "the", ".", *NOUNS, *VERBS]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(tmp_path / "pieces")
    pretrained = {"kind": "pretrained", "path": str(tmp_path / "pieces")}
    student = {**STUDENT, "architecture": architecture, "vocabulary": pretrained, "positions": 9}
    run_recipe = pretraining(root, student=student, schedule={"epochs": 1})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1
    tagger = load_tagger(ready.storage.child(*run.folder).uri)
    assert tagger.model.model.config.pad_token_id == 1
    longest, short = [["the"] * 7, ["dog"]]
    batch = tagger.vocabulary.encode([longest, short]).gather(np.array([0, 1]))
    with torch.inference_mode():
        together = tagger.model(batch).distribution.emissions_BTY[1, 0]
        alone = tagger.model(tagger.vocabulary.encode([short]).gather(np.array([0]))).distribution
    torch.testing.assert_close(together, alone.emissions_BTY[0, 0])
    student["vocabulary"] = {**pretrained, "pruned": True}
    run_recipe = pretraining(root, student=student, schedule={"epochs": 1})
    run = student_of(prepare(run_recipe, ready.storage), run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1
    pieces = load_tagger(ready.storage.child(*run.folder).uri).vocabulary.pieces
    assert pieces.checkpoint_ids[pieces.special.mask] == words.index("<mask>")


def test_one_worker_and_two_see_the_same_masks(pretrained):
    ready, run, _ = pretrained
    part, rows = encoded_part(ready.storage.uri, run, "train").for_epoch(5, 2, np.arange(12))
    whole = part.text.gather(rows)
    for worker_rows in (rows[::2], rows[1::2]):
        half = part.text.gather(worker_rows)
        assert torch.equal(half.pieces_BP, whole.pieces_BP[worker_rows, : half.pieces_BP.shape[1]])


def test_sentences_of_a_smaller_language_come_again_with_other_masks(root, tmp_path):
    few = {**pretraining(root).corpus.model_dump(), "cap": {"xx": 10}, "sampling_alpha": 0.0}
    run_recipe = pretraining(root, corpus=few, schedule={"epochs": 1})
    ready = prepare(run_recipe, Storage(str(tmp_path)))
    run = student_of(ready, run_recipe)
    assert executed(ready, run).scores.get("dev").beside["perplexity"].mean > 1
    data = training_data(ready.storage.uri, run, (), text="labelled")
    drawn = np.sort(sample_by_language(data.part.languages[data.rows], alpha=0.0, seed=0, epoch=0))
    batches = data.plan(drawn, batch_tokens=100, seed=0, epoch=0)
    read = [data.gather(rows, torch.device("cpu")) for rows in batches]
    copies = {}
    for rows, batch in zip(batches, read, strict=True):
        for row, pieces, length in zip(rows, batch.text.pieces_BP, batch.text.piece_lengths_B, strict=True):
            copies.setdefault(int(drawn[row]), []).append(tuple(pieces[:length].tolist()))
    repeated = [masks for masks in copies.values() if len(masks) > 1]
    assert len(repeated) == 10
    assert all(len(masks) in (3, 4) for masks in repeated)
    assert sum(len(set(masks)) for masks in repeated) > 0.9 * sum(map(len, repeated))
    assert sum(map(len, copies.values())) == len(drawn) == len(data.rows)


SIZES = {"bert": 260, "roberta": 470}


@pytest.mark.parametrize("kind", SIZES)
def test_pieces_are_trained_on_languages_as_they_are_sampled(tmp_path, kind):
    draw = np.random.default_rng(0)
    alphabets = {"en": ("pqrstuvwxy", 400), "xx": ("abcdefghij", 20)}
    words = {
        name: ["".join(draw.choice([*letters], 6)) for _ in range(60)]
        for name, (letters, _) in alphabets.items()
    }
    for name, (_, count) in alphabets.items():
        for part, size in (("train", count), ("dev", 4), ("test", 4)):
            lines = (" ".join(draw.choice(words[name], 8)) for _ in range(size))
            (tmp_path / f"{name}-{part}.txt").write_text("\n".join(lines) + "\n")
    mean = {}
    for alpha in (1.0, 0.0):
        corpus = {**pretraining(tmp_path).corpus.model_dump(), "sampling_alpha": alpha}
        student = {**STUDENT, "vocabulary": {"kind": kind, "size": SIZES[kind]}}
        run_recipe = pretraining(tmp_path, corpus=corpus, student=student)
        ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
        pieces = open_vocabulary(ready.storage, student_of(ready, run_recipe).vocabulary_id).pieces
        mean[alpha] = {
            name: len(pieces.pieces(language_words).values) / len(language_words)
            for name, language_words in words.items()
        }
    assert mean[1.0]["xx"] > mean[1.0]["en"] + 2
    assert mean[0.0]["xx"] < mean[1.0]["xx"] - 1
    assert mean[0.0]["en"] > mean[1.0]["en"], "pieces are as many as before"


def test_a_model_that_is_none_of_transformers_is_no_checkpoint(tmp_path):
    from tests.training.small import prepared, recipe

    ready = prepared(str(tmp_path / "store"), recipe(objective={"kind": "gold"}, schedule={"epochs": 1}))
    run = student_of(ready, objective={"kind": "gold"}, schedule={"epochs": 1})
    executed(ready, run)
    with pytest.raises(ExportError, match="not a Transformers model"):
        export_checkpoint(ready.storage.child(*run.folder), Storage(str(tmp_path / "out")))


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"task": "pos"}, ("student", "kind"), "set task: masked_lm"),
        (
            {"task": "pos", "student": {"kind": "pretrained_encoder", "path": "encoder"}},
            ("student", "kind"),
            "student.kind: pretrained with",
        ),
        (
            {"student": {"kind": "bilstm", "embedding_dim": 8, "hidden_dim": 8}},
            ("student", "kind"),
            "encoder",
        ),
        (
            {"student": {**STUDENT, "vocabulary": {"kind": "word"}}},
            ("student", "vocabulary"),
            "no mask piece; set kind: bert",
        ),
        (
            {"student": {**STUDENT, "vocabulary": {"kind": "teacher"}}},
            ("student", "vocabulary"),
            "there is no teacher",
        ),
        (
            {"teachers": {"kind": "bilstm_crf", "embedding_dim": 8, "hidden_dim": 8}},
            ("teachers", "kind"),
            "set teachers.kind: hf_masked_lm",
        ),
        (
            {"objective": {"kind": "structural"}},
            ("objective", "kind"),
            "learns from a teacher, and there is none",
        ),
        ({"unlabelled": "{lang}-dev.txt"}, ("corpus", "unlabelled"), "name its files in corpus.train"),
        ({"unlabelled_languages": ("xx",)}, ("corpus", "unlabelled_languages"), "in corpus.languages"),
    ],
)
def test_what_does_not_pretrain_is_refused_with_a_hint(root, changes, path, message):
    corpus = {name: changes.pop(name) for name in [*changes] if name.startswith("unlabelled")}
    fault_path = {**pretraining(root).corpus.model_dump(), **corpus}
    faults = recipe_faults(pretraining(root, corpus=fault_path, **changes))
    assert any(fault_path == path and message in fault_text for fault_path, fault_text in faults), faults
