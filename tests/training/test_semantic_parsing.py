"""Trees of intents and slots through whole runs: trained, stored, scored by language, loaded. Without Ray."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

import raykd
from raykd.deploy.export import export_run
from raykd.errors import ExportError, StoreError
from raykd.forms import STEPS
from raykd.forms.steps import bracket_text, tree_from_steps
from raykd.layers.model_config import BuildInputs
from raykd.layers.pointer_generator import PointerGenerator
from raykd.precompute.model_cost import measure_cost
from raykd.recipes.recipe import Recipe
from raykd.recipes.recipe_faults import recipe_faults
from raykd.storage.store import Storage
from raykd.structures import log_partition, score, viterbi
from raykd.tasks.semantic_parsing import SEMANTIC_PARSING
from raykd.training.data import cached_corpus, encoded_part, training_data
from raykd.training.evaluate import score_part
from raykd.training.prepare import prepare
from raykd.training.worker import Worker
from tests.teachers.checkpoints import make_checkpoint
from tests.training.small import called_once, executed, student_of

CITIES = ["rome", "new york", "oslo", "san jose"]
FRAMES = [
    ("fly from {} to {} now", "flight", ("from", "to")),
    ("the fare to {}", "fare", ("to",)),
    ("{} please", "city", ("name",)),
]
STUDENT = {
    "kind": "seq2seq", "embedding_dim": 32, "layers": 1, "heads": 2, "positions": 32, "decoder_layers": 1,
    "decoder_feed_forward_dim": 32, "vocabulary": {"kind": "word"},
}  # fmt: skip


def utterance(draw):
    """Words, IOB2 slots and the intent, which follow from each other."""
    frame, intent, types = draw.choice(FRAMES)
    words, slots, remaining_types = [], [], list(types)
    for word in frame.split():
        if word != "{}":
            words, slots = [*words, word], [*slots, "O"]
            continue
        city, kind = draw.choice(CITIES).split(), remaining_types.pop(0)
        words += city
        slots += [f"{letter}-{kind}" for letter in "BI"[: len(city)]]
    return words, slots, intent


def write_files(root):
    """The same utterances in the formats of ATIS and, as trees one of which is below another's slot, of mTOP."""
    draw = random.Random(0)
    for language, parts in (("en", {"train": 80, "dev": 15, "test": 15}), ("xx", {"test": 10})):
        for part, count in parts.items():
            utterances = [utterance(draw) for _ in range(count)]
            lines = (f"BOS {' '.join(w)} EOS\tO {' '.join(s)} {i}\n" for w, s, i in utterances)
            (root / f"{language}-{part}.iob").write_text("".join(lines))
            (root / f"{language}-{part}.txt").write_text("".join(mtop_line(w) for w, _, _ in utterances))
    return root


def mtop_line(words):
    city = "".join(f"[SL:CITY {name} ] " for name in CITIES if name in " ".join(words))
    tree = f"[IN:GO [SL:TO [IN:GET_CITY {city}] ] ]"
    return "\t".join(["1", "", "", " ".join(words), "", "en_XX", tree, json.dumps({"tokens": words})]) + "\n"


def parsing(root, source="atis", **changes):
    ending = {"atis": "iob", "mtop": "txt"}[source]
    tree = {
        "task": "semantic_parsing",
        "corpus": {
            "source": source, "root": str(root), "languages": ("en", "xx"), "zero_shot_languages": ("xx",),
            "duplicates": "keep", "overlaps": "keep", **{p: f"{{lang}}-{p}.{ending}" for p in ("train", "dev", "test")},
        },
        "teachers": {"kind": "none"},
        "student": STUDENT,
        "objective": {"kind": "gold"},
        "schedule": {"epochs": 12},
        "training": {"batch_tokens": 80, "learning_rate": 1e-2, "loss_average": "token", "dropout": 0.1},
    }  # fmt: skip
    corpus = {**tree["corpus"], **changes.pop("corpus", {})}
    return Recipe.model_validate({**tree, "corpus": corpus, **changes})


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module", params=["atis", "mtop"])
def trained(request, root, tmp_path_factory):
    """The store, the run and its result."""
    run_recipe = parsing(root, request.param)
    assert not recipe_faults(run_recipe)
    ready = prepare(run_recipe, Storage(str(tmp_path_factory.mktemp("store"))))
    run = student_of(ready, run_recipe)
    return ready, run, executed(ready, run)


def test_it_learns_trees_and_is_scored_by_language(trained):
    _, _, result = trained
    losses = [epoch["losses"]["gold"] for epoch in result.epochs]
    assert losses[-1] < losses[0] / 4
    for part, groups in (("dev", {"source": {"en"}}), ("test", {"source": {"en"}, "target": {"xx"}})):
        for group, languages in groups.items():
            scores = result.scores.get(part, group)
            assert set(scores.by_language) == languages
            assert scores.mean > 0.5
            assert set(scores.beside) == {"intent_accuracy", "well_formed"}
            assert all(scores.mean <= beside.mean <= 1 for beside in scores.beside.values())


def test_the_loaded_model_says_what_was_scored(trained):
    ready, run, result = trained
    loaded = raykd.load(ready.storage.child(*run.folder).uri)
    corpus = cached_corpus(ready.storage.uri, run.corpus_id)
    part = encoded_part(ready.storage.uri, run, "test")
    english = [i for i, language in enumerate(part.languages) if language == "en"]
    words = [tokens[1:] for tokens in part.labels.tokens.to_pylist()]
    gold = [
        bracket_text(steps, tokens)
        for steps, tokens in zip(part.labels.lists(), part.labels.tokens.to_pylist(), strict=True)
    ]
    predicted = loaded.trees(words)
    assert sum(predicted[i] == gold[i] for i in english) / len(english) == pytest.approx(
        result.scores.get("test").mean
    )
    assert loaded.labels == STEPS.predicted_tags(corpus.tag_set).tags
    with pytest.raises(TypeError, match="call trees"):
        loaded.label(words)
    with pytest.raises(TypeError, match="call trees"):
        loaded.parse(words)


def model_and_batch(trained, *rows, **settings):
    ready, run, _ = trained
    model = raykd.load(ready.storage.child(*run.folder).uri).model
    for name, value in settings.items():
        setattr(model, name, value)
    return model, encoded_part(ready.storage.uri, run, "test").with_decoder_input().text.gather(
        np.array(rows)
    )


@pytest.mark.parametrize("beam", [1, 3])
def test_what_is_generated_step_by_step_has_the_probability_that_is_trained(trained, beam):
    """Steps from a cache of the previous ones, hypotheses changing places, against all steps at once."""
    model, batch = model_and_batch(trained, 0, 3, 7, 12, _beam=beam)
    with torch.inference_mode():
        generated = model(replace(batch, steps_BS=None)).distribution
        steps_BS, log_p_B = viterbi(generated)
        batch_with_steps = replace(batch, steps_BS=steps_BS, step_lengths_B=generated.lengths_B)
        forced = model(batch_with_steps).distribution
        torch.testing.assert_close(
            log_p_B, score(forced, steps_BS) - log_partition(forced), rtol=1e-4, atol=1e-4
        )
        if beam == 1:
            inside_BS = forced.mask_BT
            assert torch.equal(forced.emissions_BTY.argmax(2)[inside_BS], steps_BS[inside_BS])
        alone = model(replace(batch, steps_BS=None)).distribution
        assert torch.equal(viterbi(alone)[0], steps_BS)


def test_a_wider_beam_finds_nothing_less_probable(trained):
    """If greedy search ends complete. It is so of these models, not of any."""
    greedy, batch = model_and_batch(trained, *range(10))
    batch = replace(batch, steps_BS=None)
    with torch.inference_mode():
        greedy_log_p = viterbi(greedy(batch).distribution)[1]
        greedy._beam = 4
        assert (viterbi(greedy(batch).distribution)[1] >= greedy_log_p - 1e-4).all()


def test_a_sentence_has_the_same_tree_alone(trained):
    model, batch = model_and_batch(trained, *range(8))
    together = model.generate(batch)
    for row in range(8):
        _, single = model_and_batch(trained, row)
        alone = model.generate(single)
        length = int(alone.lengths_B[0])
        assert int(together.lengths_B[row]) == length
        (single_path,), (log_p,) = viterbi(alone)
        joint_paths, logs = viterbi(together)
        words = single.lengths_B
        assert torch.equal(single_path, joint_paths[row, :length])
        assert float(logs[row]) == pytest.approx(float(log_p), abs=1e-4)
        assert int(single_path.max()) < len(model.scores.weight) + int(
            words
        )  # points to no word of another sentence


def test_training_is_given_the_steps_and_counts_them(trained):
    ready, run, _ = trained
    data = training_data(ready.storage.uri, run, [], text="labelled")
    rows = np.arange(4)
    data.plan(rows, batch_tokens=100, seed=0, epoch=0)
    batch = data.gather(rows, torch.device("cpu"))
    assert torch.equal(batch.text.steps_BS, batch.targets.tags_BT)
    assert batch.text.step_lengths_B.tolist() == data.part.text.lengths[rows].tolist()
    labels, words = data.part.labels.labels, list(data.part.labels.tokens.to_pylist())
    for row in rows:
        steps = labels.decode(batch.text.steps_BS[row, : batch.text.step_lengths_B[row]].tolist())
        assert tree_from_steps(steps, len(words[row])) is not None
    assert encoded_part(ready.storage.uri, run, "test").text.gather(rows).steps_BS is None


def test_what_is_no_tree_is_wrong_and_nothing_breaks(trained):
    ready, run, _ = trained
    part = encoded_part(ready.storage.uri, run, "test")
    gold = [np.array(part.labels.labels.encode(steps)) for steps in part.labels.lists()]
    draw = np.random.default_rng(0)
    count = len(part.labels.labels)
    broken = [draw.integers(0, count + 40, draw.integers(0, 7)) for _ in gold]
    ends = {"tag_set": None, "languages": list(part.languages), "targets": ("xx",)}
    right = SEMANTIC_PARSING.score(part.labels, gold, **ends)
    assert right["source"].mean == right["target"].mean == right["source"].beside["well_formed"].mean == 1
    wrong = SEMANTIC_PARSING.score(part.labels, broken, **ends)
    assert wrong["source"].mean == wrong["target"].mean == 0
    mixed = SEMANTIC_PARSING.score(part.labels, [*gold[:6], *broken[6:]], **ends)
    sources = int((part.languages == "en").sum())
    assert mixed["source"].mean == pytest.approx(6 / sources)


def test_equal_words_count_as_each_other(root, tmp_path):
    """As mTOP's trees are compared: the tree says a word, not which of two that are the same."""
    (tmp_path / "t.txt").write_text(mtop_line(["rome", "or", "rome"]))
    files = dict.fromkeys(("train", "dev", "test"), "t.txt")
    run_recipe = parsing(tmp_path, "mtop", corpus={"languages": ("en",), "zero_shot_languages": (), **files})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    part = encoded_part(ready.storage.uri, student_of(ready, run_recipe), "test")
    (steps,) = part.labels.lists()
    assert "@1" in steps
    names = part.labels.labels
    for word, score_ in (("@3", 1.0), ("@2", 0.0)):
        number_of_step = np.array(names.encode([word if step == "@1" else step for step in steps]))
        assert (
            SEMANTIC_PARSING.score(part.labels, [number_of_step], tag_set=None, languages=["en"])[
                "source"
            ].mean
            == score_
        )


def test_one_worker_and_two_take_the_same_step(trained):
    """Dropout is drawn by a sentence's place in the global batch, in encoder and decoder alike."""
    from raykd.layers.dropout import step_masks

    model, _ = model_and_batch(trained)[0].train(), None
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.3
    ready, run, _ = trained
    text = encoded_part(ready.storage.uri, run, "train").with_decoder_input().text

    def scores(rows, places):
        with step_masks(5, torch.tensor(places)):
            return model(text.gather(np.array(rows))).distribution

    whole = scores([0, 1, 2, 3], [0, 1, 2, 3])
    for row in range(4):
        row_scores = scores([row], [row])
        steps, labels = row_scores.emissions_BTY.shape[1:]
        torch.testing.assert_close(
            row_scores.emissions_BTY[0], whole.emissions_BTY[row, :steps, :labels], rtol=1e-4, atol=1e-4
        )


def test_long_sentences_are_read_in_windows(trained):
    model, _ = model_and_batch(trained, 0)
    ready, run, _ = trained
    loaded = raykd.load(ready.storage.child(*run.folder).uri)
    assert model.piece_limit == 32
    assert len(loaded.trees([["rome"] * 50, ["rome"]])) == 2


@pytest.mark.parametrize(
    ("vocabulary", "around"), [("word", 0), ("wordpiece", 0), ("bert", 1), ("roberta", 1)]
)
def test_windows_know_the_pieces_around_a_sentence(root, vocabulary, around):
    student = parsing(root, student={**STUDENT, "vocabulary": {"kind": vocabulary}}).student
    special = student.tokenizer.build({"rome": 2}).special
    model = student.build(BuildInputs(vocabulary_size=20, tag_set=STEPS.tag_set(["IN:A"]), special=special))
    assert [model.architecture()[name] for name in ("prefix", "suffix")] == [around, around]
    assert (len(special.prefix), len(special.suffix)) == (around, around)


def test_costs_are_measured_and_no_graph_is_made(trained, monkeypatch, tmp_path):
    monkeypatch.setattr("raykd.precompute.model_cost.time_in_turns", called_once)
    ready, run, result = trained
    figures = measure_cost(ready.storage.uri, run).figures
    assert figures["parameters"] == result.parameters
    assert figures["latency_ms_torch"] == 1.0
    assert not {"latency_ms", "bytes"} & figures.keys()
    with pytest.raises(ExportError, match=r"load the model with raykd\.load"):
        export_run(ready.storage.child(*run.folder), Storage(str(tmp_path)))


def test_a_checkpoint_is_fine_tuned_without_its_embeddings(root, tmp_path):
    path = make_checkpoint(tmp_path / "checkpoint", head=False, longest=32)
    student = {"kind": "seq2seq", "path": path, "freeze": ("embeddings",), "decoder_layers": 1, "beam": 2}
    run_recipe = parsing(root, student=student, schedule={"epochs": 1})
    assert not recipe_faults(run_recipe)
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    run = student_of(ready, run_recipe)
    before = run_recipe.student.pinned().build(
        BuildInputs(vocabulary_size=0, tag_set=STEPS.predicted_tags(ready.corpus.tag_set))
    )
    embeddings = before.embedding_matrix().clone()
    executed(ready, run)
    folder = ready.storage.child(*run.folder)
    model = raykd.load(folder.uri).model
    assert torch.equal(model.embedding_matrix(), embeddings)
    assert {id(p) for p in model.fixed_parameters()} == {id(p) for p in model.layer_groups()["embeddings"]}
    assert any(
        not torch.equal(a, b)
        for a, b in zip(before.layer_groups()["encoder"], model.layer_groups()["encoder"], strict=True)
    )
    # The same checkpoint elsewhere is the same student; and one that changed is refused.
    second_checkpoint = make_checkpoint(tmp_path / "elsewhere", head=False, longest=32)
    moved = parsing(root, student={**student, "path": second_checkpoint}, schedule={"epochs": 1})
    assert student_of(ready, moved).id == run.id
    changed = run.model | {"checksum": "0" * 64}
    with pytest.raises(StoreError, match="changed since its checksum was taken"):
        type(run_recipe.student).model_validate_json(json.dumps(changed)).build(
            BuildInputs(vocabulary_size=0, tag_set=ready.corpus.tag_set)
        )
    # It is used without the checkpoint.
    (tmp_path / "checkpoint" / "model.safetensors").unlink()
    assert isinstance(raykd.load(folder.uri).model, PointerGenerator)


@pytest.mark.parametrize(
    ("student", "message"),
    [
        ({"kind": "seq2seq"}, "neither path nor embedding_dim"),
        ({**STUDENT, "heads": 5}, "set embedding_dim: 30"),
        ({**STUDENT, "freeze": ("embeddings",)}, "omit it, or set path"),
        (
            {"kind": "seq2seq", "path": "x", "layers": 2, "heads": 8},
            "has its own layers, heads; omit these keys",
        ),
        ({"kind": "seq2seq", "path": "x", "vocabulary": {"kind": "word"}}, "reads its own pieces"),
        (
            {
                "kind": "seq2seq",
                "path": "x",
                "vocabulary": {"kind": "pretrained", "path": "x", "pruned": True},
            },
            "all of them; omit vocabulary",
        ),
    ],
)
def test_settings_that_contradict_each_other(root, student, message):
    with pytest.raises(ValueError, match=message):
        parsing(root, student=student)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"task": "intent_slots"}, ("student", "kind"), "set task: semantic_parsing"),
        ({"task": "intent_slots", "source": "mtop"}, ("task",), "set task: semantic_parsing"),
        (
            {"student": {"kind": "bilstm", "embedding_dim": 8, "hidden_dim": 8}},
            ("student", "kind"),
            "generates no trees; set student.kind: seq2seq",
        ),
        (
            {"teachers": {"kind": "bilstm_crf", "embedding_dim": 8, "hidden_dim": 8}},
            ("teachers", "kind"),
            "set teachers.kind: hf_seq2seq, or none",
        ),
        ({"corpus": {"unlabelled": "en-test.iob"}}, ("corpus", "unlabelled"), "teaches nothing"),
        (
            {
                "corpus": {
                    "unlabelled_languages": ("xx",),
                    "zero_shot_languages": (),
                    "train": "{lang}-test.iob",
                }
            },
            ("corpus", "unlabelled_languages"),
            "or name the languages in zero_shot_languages",
        ),
        (
            {"student": {**STUDENT, "vocabulary": {"kind": "teacher"}}},
            ("student", "vocabulary"),
            "there is no teacher",
        ),
        (
            {"objective": {"kind": "structural"}},
            ("objective", "kind"),
            "learns from a teacher, and there is none",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_hint(root, changes, path, message):
    faults = recipe_faults(parsing(root, **changes))
    assert any(fault_path == path and message in fault_text for fault_path, fault_text in faults), faults


def test_a_corpus_without_trees_is_refused(root):
    plain = parsing(root).model_dump() | {
        "corpus": {
            "source": "builtin",
            "languages": ("en",),
            "train": 8,
            "dev": 4,
            "test": 4,
            "unlabelled": 0,
        }
    }
    faults = recipe_faults(Recipe.model_validate(plain))
    assert any(path == ("corpus", "source") and "or mtop" in fault_text for path, fault_text in faults), (
        faults
    )


def test_scores_are_those_of_any_number_of_workers(trained):
    """The loop of all tasks evaluates the model: what is found is put together by the rows of the sentences."""
    ready, run, result = trained
    part = encoded_part(ready.storage.uri, run, "dev")
    model, _ = model_and_batch(trained, 0)
    scores = score_part(model, part, SEMANTIC_PARSING, ready.corpus.tag_set, worker=Worker())
    assert scores["source"].mean == pytest.approx(result.scores.get("dev").mean)


def test_it_is_trained_in_bf16_too(trained):
    model, batch = model_and_batch(trained, 0, 3, 7)
    with torch.autocast("cpu", torch.bfloat16):
        distribution = model.train()(batch).distribution
    labels_BS = batch.steps_BS
    assert distribution.dtype == torch.float32
    loss = (log_partition(distribution) - score(distribution, labels_BS)).sum()
    loss.backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not without
