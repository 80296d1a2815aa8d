"""Students cut from the teacher of a sweep: weights at the start, identities, layers compared, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForTokenClassification

from raykd.deploy.export import export_run
from raykd.errors import StoreError
from raykd.layers.model import Model
from raykd.recipes.recipe_faults import recipe_faults
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.storage.layout import IMPORTANCE
from raykd.storage.store import Storage
from raykd.sweep.doctor import examine_store
from raykd.sweep.uses import _use, used_by
from raykd.training.data import encoded_part
from raykd.training.execute import _starting_model
from raykd.training.load import load_tagger
from raykd.training.model_folder import load_model
from raykd.training.prepare import prepare
from raykd.training.student_runs import student_runs
from raykd.training.transformers_checkpoint import export_checkpoint
from tests.teachers.checkpoints import make_checkpoint
from tests.training.loops import same, weights_of
from tests.training.small import executed, prepared, recipe, train_teachers

LAYERS = 3
STUDENT = {"kind": "pretrained", "path": "teacher"}
POSTERIOR = {
    "objective": {"kind": "posterior"},
    "schedule": {"epochs": 1},
    "training": {"learning_rate": 1e-3},
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    return make_checkpoint(tmp_path_factory.mktemp("checkpoint"), layers=LAYERS, longest=64)


def cut_recipe(checkpoint, teachers=(), student=(), **changes):
    """A recipe with a fine-tuned teacher and a student that is cut from it."""
    fine_tuned = {"kind": "hf_token_classifier", "path": checkpoint, "fine_tune": True, "epochs": 1}
    fine_tuned["training"] = {"batch_tokens": 200, "learning_rate": 1e-3}
    changes = {**POSTERIOR, **changes}
    return recipe(teachers={**fine_tuned, **dict(teachers)}, student={**STUDENT, **dict(student)}, **changes)


@pytest.fixture(scope="module")
def ready(checkpoint, tmp_path_factory):
    """A store with the teacher and its signals."""
    return prepared(str(tmp_path_factory.mktemp("cut") / "store"), cut_recipe(checkpoint))


def start_of(ready, checkpoint, **settings) -> Model:
    (run,) = student_runs(cut_recipe(checkpoint, **settings), ready)
    return _starting_model(ready.storage, run).eval()


def emissions(model, ready, run):
    part = encoded_part(ready.storage.uri, run, "dev").text
    with torch.inference_mode():
        return model(part.gather(np.arange(len(part.piece_lengths)))).distribution.emissions_BTY


def test_a_student_that_keeps_everything_is_its_teacher(ready, checkpoint):
    (run,) = student_runs(cut_recipe(checkpoint), ready)
    teacher_run = ready.teachers[0].run
    assert run.cut_from == teacher_run.id
    start, teacher = _starting_model(ready.storage, run).eval(), load_model(ready.storage, teacher_run)
    assert torch.equal(emissions(start, ready, run), emissions(teacher, ready, run))


def test_its_layers_and_its_head_are_the_teachers(ready, checkpoint):
    start = weights_of(start_of(ready, checkpoint, student={"layers": (0, 2)}))
    teacher = weights_of(load_model(ready.storage, ready.teachers[0].run))
    renamed = {name.replace("layer.1.", "layer.2."): tensor for name, tensor in start.items()}
    assert same(renamed, {name: teacher[name] for name in renamed})
    assert any("layer.2" in name for name in renamed)
    assert not any("layer.1" in name for name in renamed)


def test_as_published_it_has_the_checkpoints_layers_and_a_head_of_its_seed(ready, checkpoint):
    published = AutoModel.from_pretrained(checkpoint).encoder.layer[2].state_dict()
    starts = [
        start_of(
            ready, checkpoint, student={"layers": (0, 2), "start": "pretrained"}, training={"seed": seed}
        )
        for seed in (0, 1)
    ]
    assert all(same(start.model.bert.encoder.layer[1].state_dict(), published) for start in starts)
    first, second = (start.model.classifier.weight for start in starts)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("start", ["fine_tuned", "pretrained"])
def test_narrow_layers_have_the_most_important_parts_of_the_text(ready, checkpoint, start):
    student = {"layers": (0, 1), "heads": 1, "feed_forward": 20, "embedding_rank": 6, "start": start}
    narrow = start_of(ready, checkpoint, student=student)
    (run,) = student_runs(cut_recipe(checkpoint, student=student), ready)
    (whole_run,) = student_runs(cut_recipe(checkpoint, student={"start": start}), ready)
    whole = _starting_model(ready.storage, whole_run).eval()
    for number in range(2):
        rows, all_rows = (
            model.model.bert.encoder.layer[number].intermediate.dense.weight for model in (narrow, whole)
        )
        assert rows.shape[0] == 20
        assert {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in all_rows.tolist()}
    vectors = narrow.model.get_input_embeddings()(torch.arange(5))
    assert vectors.shape == (5, 16)
    importance = list(ready.storage.names(f"{IMPORTANCE}/"))
    second_start = _starting_model(ready.storage, run)
    assert same(weights_of(narrow), weights_of(second_start))
    assert list(ready.storage.names(f"{IMPORTANCE}/")) == importance


def test_it_is_known_by_the_teacher_and_the_cut(ready, checkpoint, tmp_path):
    def run_of(**settings):
        (run,) = student_runs(cut_recipe(checkpoint, **settings), ready)
        return run

    first = run_of(student={"layers": (0, 2)})
    assert run_of(student={"layers": (0, 2), "start": "fine_tuned"}).id == first.id
    changed_runs = [
        run_of(student=student) for student in ({"layers": (0, 1)}, {"layers": (0, 2), "heads": 1})
    ]
    changed_runs.append(run_of(student={"layers": (0, 2), "start": "pretrained"}))
    assert len({first.id, *(run.id for run in changed_runs)}) == 4
    second = prepare(cut_recipe(checkpoint, teachers={"epochs": 2}), ready.storage)
    (run,) = student_runs(cut_recipe(checkpoint, teachers={"epochs": 2}, student={"layers": (0, 2)}), second)
    assert run.id != first.id
    assert run.cut_from == second.teachers[0].run.id


def test_pieces_that_the_teacher_lacks_have_the_published_vectors(checkpoint, tmp_path):
    pruned = cut_recipe(
        checkpoint, teachers={"vocabulary": "pruned"}, student={"layers": (0, 1)},
        teacher_corpus={"cap": 1, "unlabelled_cap": 1},
    )  # fmt: skip
    ready = prepare(pruned, Storage(str(tmp_path / "store")))
    train_teachers(ready)
    (run,) = student_runs(pruned, ready)
    teacher_pieces, student_pieces = (
        open_vocabulary(ready.storage, some.vocabulary_id).pieces.checkpoint_ids
        for some in (ready.teachers[0].run, run)
    )
    missing = [place for place, piece in enumerate(student_pieces) if piece not in teacher_pieces]
    assert missing
    vectors = _starting_model(ready.storage, run).embedding_matrix()
    published = AutoModel.from_pretrained(checkpoint).get_input_embeddings().weight
    assert torch.equal(vectors[missing], published[[student_pieces[place] for place in missing]])
    teacher = load_model(ready.storage, ready.teachers[0].run).embedding_matrix()
    for place, piece in enumerate(student_pieces):
        if piece in teacher_pieces:
            assert torch.equal(vectors[place], teacher[teacher_pieces.index(piece)])


def test_each_language_is_cut_from_its_own_teacher(checkpoint, tmp_path):
    monolingual = {"scope": "language"}
    run_recipe = cut_recipe(checkpoint, teachers=monolingual, student={**monolingual, "layers": (0,)})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    runs = student_runs(run_recipe, ready)
    assert [run.cut_from for run in runs] == [teacher.run.id for teacher in ready.teachers]
    (path, message), *further = recipe_faults(
        cut_recipe(checkpoint, teachers=monolingual, student={"layers": (0,)})
    )
    assert (path, further) == (("student", "path"), [])
    assert "each language has another teacher" in message
    assert "set student.scope: language, or student.start: pretrained" in message
    pretrained = cut_recipe(checkpoint, teachers=monolingual, student={"layers": (0,), "start": "pretrained"})
    assert not recipe_faults(pretrained)


def test_of_an_ensemble_a_member_is_cut(checkpoint, tmp_path):
    run_recipe = cut_recipe(checkpoint, teachers={"count": 2}, student={"member": 1, "layers": (0,)})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    (run,) = student_runs(run_recipe, ready)
    assert run.cut_from == ready.teachers[0].run.members[1].id
    for member, key in ((None, "path"), (2, "member")):
        (fault,) = recipe_faults(cut_recipe(checkpoint, teachers={"count": 2}, student={"member": member}))
        assert fault[0] == ("student", key)
        assert "is the mean of 2 models" in fault[1]
        assert "student.member to a number from 0 to 1" in fault[1]
    (fault,) = recipe_faults(cut_recipe(checkpoint, student={"member": 0}))
    assert fault[0] == ("student", "member")


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        (
            {"student": {"path": "elsewhere", "start": "pretrained"}},
            "start",
            "is for a student with path: teacher",
        ),
        ({"student": {"path": "elsewhere", "member": 0}}, "member", "is for a student with path: teacher"),
        ({"student": {"start": "pretrained", "member": 0}}, "member", "which has no members; omit it"),
        (
            {"student": {"start": "fine_tuned"}, "start_from": "run-0"},
            "start",
            "all weights are taken from the run",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_faults(checkpoint, changes, key, message):
    faults = recipe_faults(cut_recipe(checkpoint, **changes))
    assert any(path == ("student", key) and message in text for path, text in faults)


def test_without_a_teacher_none_is_cut():
    faults = recipe_faults(recipe(student=STUDENT, teachers={"kind": "none"}, objective={"kind": "gold"}))
    message = "there is no teacher to take it from; write a value for the student"
    assert (("student", "path"), message) in faults


def test_only_a_checkpoint_is_cut():
    student = {**STUDENT, "layers": (0,)}
    (fault,) = recipe_faults(recipe(student=student, objective={"kind": "posterior"}))
    assert fault[0] == ("student", "path")
    assert "the teacher 'bilstm_crf' is no Transformers checkpoint, of which a student is cut" in fault[1]


def test_a_teacher_used_as_published_gives_its_encoder_and_no_head(checkpoint, tmp_path):
    run_recipe = cut_recipe(
        checkpoint, teachers={"fine_tune": False, "epochs": 3, "training": {}}, student={"layers": (0, 2)}
    )
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    (run,) = student_runs(run_recipe, ready)
    assert run.cut_from == ""
    start = _starting_model(ready.storage, run)
    published = AutoModelForTokenClassification.from_pretrained(checkpoint).bert
    assert same(start.model.bert.encoder.layer[1].state_dict(), published.encoder.layer[2].state_dict())


def test_each_layer_is_compared_with_the_layer_that_it_was(ready, checkpoint):
    compared = {
        "kind": "mix",
        "parts": (
            {"objective": {"kind": "posterior"}},
            {"objective": {"kind": "hidden_states"}},
            {"objective": {"kind": "attention"}},
        ),
    }
    (stage,) = cut_recipe(checkpoint, student={"layers": (0, 2)}, objective=compared).all_stages
    assert [part.objective.pairs for part in stage.objective.parts[1:]] == [((1, 1), (3, 2))] * 2
    with_layers = {"kind": "hidden_states", "layers": (0, 3)}
    (stage,) = cut_recipe(checkpoint, student={"layers": (0, 2)}, objective=with_layers).all_stages
    assert stage.objective.pairs == ((0, 0), (3, 1))
    uncut = cut_recipe(checkpoint, student={"path": "elsewhere"}, objective=compared)
    fault, *_ = recipe_faults(uncut)
    assert fault[0] == ("objective", "parts", 1, "objective", "kind")
    assert "name layers, or set student.path: teacher and student.layers" in fault[1]


def test_it_learns_ships_and_is_kept(ready, checkpoint, tmp_path):
    """Trained, loaded, exported as ONNX and as a checkpoint; a store that is cleaned keeps what it was made from."""
    compared = {
        "kind": "mix",
        "parts": (
            {"objective": {"kind": "posterior"}},
            {"objective": {"kind": "hidden_states"}, "weight": 0.1},
        ),
    }
    student = {
        "layers": (0, 2),
        "heads": 1,
        "feed_forward": 20,
        "embedding_rank": 6,
        "freeze": ("embeddings",),
    }
    (run,) = student_runs(cut_recipe(checkpoint, student=student, objective=compared), ready)
    start = weights_of(_starting_model(ready.storage, run))
    executed(ready, run)
    folder = ready.storage.child(*run.folder)
    tagger = load_tagger(folder.uri)
    learnt = weights_of(tagger.model)
    changed = {name for name in learnt if not torch.equal(learnt[name], start[name])}
    assert changed
    assert not any("embeddings" in name for name in changed)

    sentences = [["Ada", "lives", "in", "Paris"], ["Berlin"]]
    exported = export_run(folder, Storage(str(tmp_path / "onnx")), store=ready.storage)
    assert exported.agreement.differing["model.onnx"] == 0
    used = used_by(ready.storage, [])
    _use(ready.storage, used, run)
    assert run.cut_from in used["teachers"]
    assert {f"{IMPORTANCE}/{name}.json" for name in used[IMPORTANCE]} <= {
        *ready.storage.names(f"{IMPORTANCE}/")
    }
    assert used[IMPORTANCE]
    export_checkpoint(folder, Storage(str(tmp_path / "checkpoint")))
    shipped = AutoModelForTokenClassification.from_pretrained(tmp_path / "checkpoint").eval()
    assert (shipped.config.num_hidden_layers, shipped.config.intermediate_size) == (2, 20)
    batch = tagger.vocabulary.encode(sentences[:1]).gather(np.array([0]))
    with torch.inference_mode():
        expected = tagger.model(batch).distribution.emissions_BTY[0]
        logits_PL = shipped(input_ids=batch.pieces_BP).logits[0]
    torch.testing.assert_close(logits_PL[batch.first_BT[0]].log_softmax(-1), expected, rtol=1e-4, atol=1e-5)


def test_a_teacher_of_other_labels_is_refused(ready, checkpoint, monkeypatch):
    (run,) = student_runs(cut_recipe(checkpoint, student={"layers": (0,)}), ready)
    teacher = load_model(ready.storage, ready.teachers[0].run)
    teacher.model.classifier = torch.nn.Linear(16, 3)
    monkeypatch.setattr("raykd.training.cut_weights.load_model", lambda *_: teacher)
    with pytest.raises(StoreError, match=r"has other labels or another head than the student \(classifier"):
        _starting_model(ready.storage, run)


def test_damaged_importance_is_refused_found_and_measured_again(checkpoint, tmp_path):
    run_recipe = cut_recipe(checkpoint, student={"layers": (0, 1), "heads": 1})
    ready = prepare(run_recipe, Storage(str(tmp_path / "store")))
    train_teachers(ready)
    (run,) = student_runs(run_recipe, ready)
    start = weights_of(_starting_model(ready.storage, run))
    (name,) = ready.storage.names(f"{IMPORTANCE}/")
    file = tmp_path / "store" / name
    data = bytearray(file.read_bytes())
    data[data.index(b"heads") + 10] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(StoreError, match="importance-"):
        _starting_model(ready.storage, run)
    (damage,) = examine_store(ready.storage).damages
    assert damage.remove == (name,)
    file.unlink()
    assert same(weights_of(_starting_model(ready.storage, run)), start)
