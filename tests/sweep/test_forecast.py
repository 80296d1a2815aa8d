"""Forecasts of the duration of a sweep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from raykd.cluster.topology import Topology
from raykd.precompute.features import encoder_tasks, feature_plan, mark_texts_encoded, store_encoder_config
from raykd.precompute.plan import precompute
from raykd.recipes.stored_vocabulary import open_vocabulary
from raykd.spec import load
from raykd.sweep import forecast as forecast_module
from raykd.sweep.forecast import (
    FRONT,
    MODEL_S,
    PHASE_S,
    REPORT_S,
    RUN_S,
    START_S,
    STEP_S,
    WORD_PIECES,
    Forecast,
    forecast_sweep,
    pieces_per_word,
)
from raykd.sweep.phases.costs import measure_costs
from raykd.sweep.sweep import Sweep
from tests.silent import Silent
from tests.sweep.in_process import call, without_ray
from tests.teachers.checkpoints import make_checkpoint
from tests.transfer.samples import here

TEXT = """\
name: long
corpus: {source: builtin, languages: [en], train: 20, dev: 6, test: 6, unlabelled: 10}
teachers: {kind: bilstm_crf, embedding_dim: 6, hidden_dim: 6, character_dim: 0, epochs: 3}
student: {kind: bilstm, embedding_dim: 6, hidden_dim: 6, vocabulary: {kind: wordpiece, size: 200}}
objective: {choice: [{kind: structural}, {kind: posterior}]}
schedule: {epochs: 4, anneal_horizon: 2}
training: {batch_tokens: 100}
search: {sampler: grid, runs_per_setting: 2}
"""


MANY = "objective: {choice: [{kind: structural}, {kind: posterior, temperature: {int: [1, 6]}}]}"


def of(folder: Path, text: str = TEXT, concurrent: int = 1) -> tuple[Forecast, Sweep]:
    folder.mkdir(exist_ok=True)
    (folder / "sweep.yaml").write_text(text)
    sweep = Sweep(load(folder / "sweep.yaml", [f"store={folder / 'store'}"]))
    with without_ray():  # 1,024 pieces a second in training, of which a third is the forward pass
        measure_costs(sweep, Topology.of({"CPU": 1.0}), Silent())
        return forecast_sweep(sweep, concurrent), sweep


def words(sweep: Sweep, *parts: str) -> int:
    corpus = sweep.preparation.corpus
    return sum(len(sentence) for part in parts for sentence in corpus.parts[part]["tokens"].to_pylist())


def share_of(sweep: Sweep) -> float:
    """Pieces of a word for the students."""
    vocabulary = open_vocabulary(sweep.storage, sweep.shapes()[0].vocabulary_id).pieces
    counts = [
        word
        for sentence in sweep.preparation.corpus.parts["train"]["tokens"].to_pylist()
        for word in sentence
    ]
    return len(vocabulary.pieces(counts).values) / len(counts)


def run_s(
    sweep: Sweep, pieces: float, *, batch: int = 100, epochs: float, share: float | None = None
) -> float:
    """Seconds of a student's training on so many pieces, at 1,024 a second, and of its scoring."""
    share = share_of(sweep) if share is None else share
    scored = share * ((1 + epochs) * words(sweep, "dev") + words(sweep, "test"))
    return RUN_S + pieces / 1024 + pieces / batch * STEP_S + scored / 1024 / 3


def test_every_phase_is_what_it_computes_at_the_measured_speed(tmp_path):
    expected, sweep = of(tmp_path)
    text, labelled = words(sweep, "train", "unlabelled"), words(sweep, "train")
    batch = sweep.members[0][1].training["batch_tokens"]
    # A teacher reads words, a student the pieces of its own vocabulary.
    teacher = run_s(sweep, 3 * labelled, batch=batch, epochs=3, share=1.0)
    assert expected.phases["teachers"] == pytest.approx(PHASE_S + teacher)
    assert expected.phases["precompute"] == pytest.approx(PHASE_S + text / 1024 / 3)
    assert share_of(sweep) > 1.5
    # Two settings of two seeds.
    student = run_s(sweep, 4 * share_of(sweep) * text, epochs=4)
    assert expected.phases["trials"] == pytest.approx(PHASE_S + 4 * student)
    assert expected.phases["baseline"] == 0
    assert (expected.phases["start"], expected.phases["report"]) == (START_S, REPORT_S)
    # Its two trials may both be on the front.
    assert expected.phases["models"] == 2 * MODEL_S


def test_models_are_forecast_where_they_are_logged_and_for_a_front_at_most(tmp_path):
    expected, _ = of(tmp_path, TEXT + "tracking: {models: none}\n")
    assert expected.phases["models"] == 0
    many = TEXT.replace("objective: {choice: [{kind: structural}, {kind: posterior}]}", MANY)
    expected, sweep = of(tmp_path / "many", many)
    assert sweep.trials > FRONT
    assert expected.phases["models"] == FRONT * MODEL_S


def test_the_pieces_of_a_word_are_counted_in_a_sample(tmp_path, monkeypatch):
    _, sweep = of(tmp_path)
    run, exact = sweep.shapes()[0], share_of(sweep)
    assert pieces_per_word(sweep, run) == pytest.approx(exact)
    monkeypatch.setattr("raykd.sweep.forecast.SAMPLE", 8)
    forecast_module._pieces_per_word.cache_clear()
    assert pieces_per_word(sweep, run) == pytest.approx(exact, rel=0.2)
    assert pieces_per_word(sweep, run) != exact
    forecast_module._pieces_per_word.cache_clear()


def test_a_forecast_is_its_phases(tmp_path):
    expected, _ = of(tmp_path)
    assert not expected.at_most
    assert expected.seconds == sum(expected.phases.values())


def test_steps_and_patience_bound_it_and_more_at_once_shorten_it(tmp_path):
    steps = TEXT.replace("epochs: 4,", "max_steps: 7, patience: 2,") + "baseline: gold\n"
    expected, sweep = of(tmp_path, steps)
    epochs = 700 / (share_of(sweep) * words(sweep, "train", "unlabelled"))
    assert expected.phases["trials"] == pytest.approx(PHASE_S + 4 * run_s(sweep, 700, epochs=epochs))
    # The processes of the trials do it.
    assert expected.phases["baseline"] == pytest.approx(expected.phases["trials"] - PHASE_S)
    assert expected.at_most
    twice = of(tmp_path, steps, concurrent=2)[0].phases["trials"]
    assert twice - PHASE_S == pytest.approx((expected.phases["trials"] - PHASE_S) / 2)


def test_trials_that_are_stopped_early_are_shorter_and_the_baseline_is_not(tmp_path, monkeypatch):
    text = TEXT + "baseline: gold\n"
    whole, _ = of(tmp_path, text)
    monkeypatch.setattr(forecast_module, "trained_share", lambda sweep: 0.25)
    part, _ = of(tmp_path, text)
    assert part.phases["trials"] - PHASE_S == pytest.approx((whole.phases["trials"] - PHASE_S) / 4)
    assert part.phases["baseline"] == whole.phases["baseline"]
    assert part.trial_s == whole.trial_s


@pytest.mark.slow
def test_what_is_computed_takes_no_time(tmp_path, capsys):
    of(tmp_path)
    words = [str(tmp_path / "sweep.yaml"), "--set", f"store={tmp_path / 'store'}"]
    with without_ray():
        call("plan", *words)
        printed = capsys.readouterr().out
        assert re.search(r"time: about \d+ s on this machine \(start 12 s, teachers ", printed)
        assert re.search(
            r"signal: emissions: \d+ sentences × 0\.\d\d KiB = 0\.\d MiB \(0\.\d MiB to compute\)", printed
        )
        assert "signal: transitions: once per teacher (0.0 MiB to compute)" in printed
        call("sweep", *words, "--set", f"tracking.uri=sqlite:///{tmp_path}/mlflow.db")
    after, _ = of(tmp_path)
    nothing = {"features": 0, "teachers": 0, "precompute": 0, "trials": 0, "baseline": 0}
    assert after.phases == {"start": START_S, **nothing, "report": REPORT_S, "models": 0}


def test_the_members_of_an_ensemble_are_trained_each_by_itself(tmp_path):
    alone, _ = of(tmp_path / "alone")
    both, sweep = of(tmp_path / "both", TEXT.replace("kind: bilstm_crf,", "kind: bilstm_crf, count: 2,"))
    assert len(sweep.members) == 2
    assert both.phases["teachers"] - PHASE_S == pytest.approx(2 * (alone.phases["teachers"] - PHASE_S))


def test_frozen_encoders_read_a_sentence_once_and_then_no_more(tmp_path):
    encoder = make_checkpoint(tmp_path / "tiny", head=False)
    text = TEXT.replace("kind: bilstm_crf,", f"kind: bilstm_crf, contextual: {{path: {encoder}}},")
    expected, sweep = of(tmp_path / "sweep", text)
    parts = sweep.preparation.corpus.parts.values()
    different = {tuple(words) for part in parts for words in part["tokens"].to_pylist()}
    reading = WORD_PIECES * sum(map(len, different)) / 1024 / 1000
    assert expected.phases["features"] == pytest.approx(PHASE_S + reading)
    # The teacher reads what is stored: it does not run the encoder again.
    speed = words(sweep, "train", "unlabelled") / 1024 / 3
    assert expected.phases["precompute"] == pytest.approx(PHASE_S + speed)
    for reading in encoder_tasks(sweep.storage, sweep.models(), sweep.teacher_texts()):
        store_encoder_config(sweep.storage, reading.config)
        precompute(feature_plan(sweep.storage, [reading]), launch=here)
        mark_texts_encoded(sweep.storage, reading)
    with without_ray():
        assert forecast_sweep(sweep, 1).phases["features"] == 0


def test_layers_that_are_unfrozen_train_one_step_after_the_other(tmp_path):
    stages = "stages: [{objective: {kind: gold}, layers: unfreeze}]\n"
    text = re.sub(r"objective: .*\n", stages, TEXT)
    expected, sweep = of(tmp_path, text)
    labelled = share_of(sweep) * words(sweep, "train")
    three = run_s(sweep, 3 * 4 * labelled, epochs=3 * 4)
    assert expected.phases["trials"] == pytest.approx(PHASE_S + 2 * three)
    # A loss of hidden states leaves out the step of the head alone; the paper's first stage.
    hidden, gold = of(tmp_path / "hidden", text.replace("kind: gold", "kind: representation, layer: 0"))
    read = share_of(gold) * words(gold, "train", "unlabelled")
    two = run_s(gold, 2 * 4 * read, epochs=2 * 4)
    assert hidden.phases["trials"] == pytest.approx(PHASE_S + 2 * two)
    projected, _ = of(
        tmp_path / "projected", text.replace("hidden_dim: 6, vocab", "hidden_dim: 6, projection: 8, vocab")
    )
    four = run_s(sweep, 4 * 4 * labelled, epochs=4 * 4)
    assert projected.phases["trials"] == pytest.approx(PHASE_S + 2 * four)


def test_strategies_of_another_scope_have_other_shapes_and_all_are_measured(tmp_path):
    gold = "stages: [{objective: {kind: gold}}]"
    text = re.sub(
        r"objective: .*\n",
        f"strategies: {{own: {{scope: language, {gold}}}, shared: {{scope: all, {gold}}}}}\n"
        "strategy: {choice: [own, shared]}\n",
        # Each language has words of its own, and so a shape.
        TEXT.replace("[en]", "[en, de]").replace("{kind: wordpiece, size: 200}", "{kind: word}"),
    )
    expected, sweep = of(tmp_path, text)
    corpora = {run.corpus_id for run in sweep.shapes()}
    whole = sweep.preparation
    assert corpora == {whole.corpus_id, *(whole.corpus_for((name,))[1] for name in ("en", "de"))}
    # One student, or two of half the text: as many pieces either way.
    both = run_s(sweep, 4 * words(sweep, "train"), epochs=4, share=1.0)
    assert expected.phases["trials"] == pytest.approx(PHASE_S + 2 * (2 * both + RUN_S))
