"""Comparison of settings with baselines: verdicts, tables, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from rich.console import Console

from raykd.errors import SpecError
from raykd.figures.trial import Trial
from raykd.report.compare import HINT, best_of_each_objective, compare, reasons_not_compared
from raykd.report.comparison_tables import compare_csv, compare_json, compare_markdown, compare_table
from tests.scores import score, scores

LOW, MIDDLE, HIGH = (0.60, 0.61, 0.62), (0.61, 0.622, 0.632), (0.70, 0.71, 0.72)


def trial(
    number, objective, test=LOW, *, dev=0.5, hidden=8, rate=1.0, annealed=1.0, target=None, **more
) -> Trial:
    """A complete trial whose test scores are `test`, and whose languages lie around their mean."""
    settings = {
        "student.hidden_dim": hidden, "training.learning_rate": rate, "schedule.epochs": 3,
        "schedule.anneal_rate": annealed, "objective.kind": objective,
    }  # fmt: skip
    mean = fmean(test)
    languages = {"en": mean + 0.1} if target else {"en": mean + 0.1, "de": mean - 0.1}
    test_scores = scores(
        score(*(dev + 0.01 * (i - len(test) // 2) for i in range(len(test)))),
        score(*test, languages=languages),
        target and score(*target, languages={"de": mean - 0.1}),
    )
    usual = {"state": "COMPLETE", "scores": test_scores}
    return Trial(number, settings=settings, objective=objective, **(usual | more))


def verdicts(comparisons):
    return {comparison.setting.trial.number: comparison.verdict for comparison in comparisons}


def drawn(comparisons, width=200, **more) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(compare_table(comparisons, baseline="gold", **more))
    return console.export_text()


@pytest.fixture
def trials():
    return [
        trial(0, "structural", HIGH, dev=0.7),
        trial(1, "top_k", MIDDLE, dev=0.6, annealed=0.5),
        trial(2, "top_k", HIGH, dev=0.4, hidden=16),
        trial(3, "gold", LOW, dev=0.5, role="baseline"),
        trial(4, "gold", HIGH, dev=0.5, role="baseline", rate=2.0),
        trial(5, "emission", dev=0.9, state="FAILED"),
    ]


def test_every_setting_stands_beside_its_own_baseline_the_best_on_dev_first(trials):
    comparisons = compare({"ner": trials})
    assert [comparison.setting.trial.number for comparison in comparisons] == [0, 1, 2]
    assert verdicts(comparisons) == {0: "better", 1: "cannot tell", 2: "no baseline"}
    better, unclear, alone = comparisons
    assert better.difference == pytest.approx(0.1)
    assert (better.epsilon, better.epsilon_reverse) == (0, 1)
    assert better.setting.sd == pytest.approx(stdev(HIGH))
    assert unclear.needed_seeds is not None
    assert unclear.sentence == f"cannot tell with 3 seeds; about {unclear.needed_seeds} would be needed"
    assert (alone.difference, alone.epsilon, alone.needed_seeds) == (None, None, None)


def test_the_level_is_shared_out_among_the_comparisons_that_are_made(trials):
    assert {comparison.alpha for comparison in compare({"ner": trials}, alpha=0.04)} == {0.02}, (
        "one of three has no baseline"
    )
    assert {comparison.alpha for comparison in compare({"ner": trials}, alpha=0.04, bonferroni=False)} == {
        0.04
    }


def test_the_threshold_decides(trials):
    strict, paper = (
        compare({"ner": trials}, threshold=threshold, bonferroni=False)[1] for threshold in (0.2, 0.5)
    )
    assert 0.2 < strict.epsilon == paper.epsilon < 0.5
    assert (strict.verdict, paper.verdict) == ("cannot tell", "better")


@pytest.mark.parametrize("label", ["0", "#00", "00", "structural", "ner:structural", "ner:0"])
def test_a_baseline_may_be_a_trial_or_the_best_of_an_objective(trials, label):
    comparisons = compare({"ner": trials}, baseline=label)
    assert {comparison.baseline.trial.number for comparison in comparisons} == {0}
    assert verdicts(comparisons) == {1: "worse", 2: "cannot tell", 3: "worse", 4: "cannot tell"}
    assert comparisons[0].sentence == "worse"
    assert comparisons[-1].sentence == "cannot tell with 3 seeds; more than 50 would be needed"


def test_the_best_of_an_objective_is_chosen_on_dev(trials):
    assert {t.number for t in best_of_each_objective(trials[:5])} == {0, 1, 3}
    assert [comparison.setting.trial.number for comparison in compare({"ner": trials}, by="objective")] == [
        0,
        1,
    ]
    assert verdicts(compare({"ner": trials}, by="objective", baseline="top_k")) == {
        0: "better",
        3: "cannot tell",
    }


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            "top_wk",
            r"--baseline top_wk: not in ner; did you mean 'top_k'\? there are structural, top_k, gold, and",
        ),
        ("7", "there are structural, top_k, gold, and trials 0, 1, 2, 3, 4"),
        ("5", "not in ner"),
        ("pos:gold", "no sweep 'pos' is compared; there are ner"),
    ],
)
def test_an_unknown_baseline_is_refused_with_what_there_is(trials, label, message):
    with pytest.raises(SpecError, match=message):
        compare({"ner": trials}, baseline=label)


def test_where_nothing_can_be_compared_this_is_reported(trials):
    with pytest.raises(SpecError, match="no complete setting with a target score"):
        compare({"ner": trials}, score="target")
    with pytest.raises(SpecError, match="no complete setting"):
        compare({"ner": trials[3:]})


def test_from_one_seed_nothing_is_concluded_and_the_hint_is_given():
    single_seeds = [trial(0, "structural", (0.7,)), trial(1, "gold", (0.6,))]
    (comparison,) = compare({"ner": single_seeds})
    assert (comparison.verdict, comparison.epsilon, comparison.setting.sd) == ("too few seeds", None, None)
    assert HINT in comparison.sentence
    assert HINT in drawn([comparison])
    assert comparison.difference == pytest.approx(0.1)


def test_what_did_not_complete_is_listed(trials):
    failed = replace(trials[5], message="out of memory")
    running = replace(trials[5], number=6, state="RUNNING")
    assert reasons_not_compared({"ner": [*trials[:5], failed, running]}) == [
        "ner: #05 emission · H8 failed (out of memory)", "ner: #06 emission · H8 has not ended"
    ]  # fmt: skip


def test_settings_of_two_sweeps_stand_together_each_against_its_own_baseline(trials):
    other_trials = [trial(0, "structural", LOW), trial(1, "gold", HIGH)]
    comparisons = compare({"a": trials, "b": other_trials})
    assert [(comparison.sweep, comparison.setting.trial.number, comparison.verdict) for comparison in comparisons] == [
        ("a", 0, "better"), ("a", 1, "cannot tell"), ("b", 0, "worse"), ("a", 2, "no baseline")
    ]  # fmt: skip
    assert "b:00" in drawn(comparisons)
    across = compare({"a": trials, "b": other_trials}, baseline="b:structural")
    assert all(comparison.baseline.trial is other_trials[0] for comparison in across)
    assert len(across) == 6


def test_the_table_shows_means_spreads_and_verdicts(trials):
    comparisons = compare({"ner": trials})
    output = drawn(comparisons, languages=True)
    assert (
        "ner: test F1 against gold only. Almost Stochastic Dominance in 2 comparisons at α = 0.025" in output
    )
    (row,) = [line for line in output.splitlines() if line.startswith("00") and "better" in line]
    assert " ".join(row.split()) == "00 structural · H8 3 71.0 ±1.0 61.0 ±1.0 +10.0 0.00 better"
    assert f"cannot tell, ~{comparisons[1].needed_seeds}" in output
    assert "no baseline: a sweep with baseline: gold trains it" in output
    assert "81.0 +10.0" in output, "English"
    assert "en" not in drawn(comparisons).split()


def test_few_seeds_are_warned_of_where_chance_does_as_well(trials):
    assert "twice in 20 times; that is more than 0.025" in drawn(compare({"ner": trials}))
    assert "twice in 20" in drawn(compare({"ner": trials}, bonferroni=False)), "1 in 10 is more than 0.05"
    assert "by chance" not in drawn(compare({"ner": trials}, alpha=0.1, bonferroni=False))


def test_targets_stand_beside_sources():
    pair = [
        trial(0, "structural", HIGH, target=(0.3, 0.4, 0.5)),
        trial(1, "gold", LOW, target=(0.0, 0.1, 0.2)),
    ]
    output = drawn(compare({"ner": pair}), languages=True)
    assert "40.0 ±10.0 +30.0" in output
    assert "de (target)" in output
    (apart,) = compare({"ner": pair}, score="target")
    assert apart.setting.by_seed == (0.3, 0.4, 0.5)
    assert "target test F1" in drawn([apart])


def test_a_metric_keeps_its_own_name():
    pair = [trial(0, "structural", HIGH, score_label="accuracy"), trial(1, "gold", score_label="accuracy")]
    assert "dev accuracy" in drawn(compare({"pos": pair}, score="dev"))


def utterances(number, objective, exact, slots, target):
    """A trial of intents and slots whose slot F1 on test is `slots`, and on target languages `target`."""
    of = {"en": fmean(slots)}
    test_scores = scores(
        0.5,
        replace(score(*exact, languages=of), beside={"slot_f1": score(*slots, languages=of)}),
        replace(
            score(*exact, languages={"de": 0.1}),
            beside={"slot_f1": score(*target, languages={"de": fmean(target)})},
        ),
    )
    return replace(
        trial(number, objective), scores=test_scores, score_name="exact_match", score_label="exact match"
    )


def test_a_metric_beside_the_score_is_compared_by_its_name():
    pair = [utterances(0, "structural", LOW, HIGH, LOW), utterances(1, "gold", LOW, LOW, HIGH)]
    assert verdicts(compare({"xsid": pair})) == {0: "cannot tell"}
    assert verdicts(compare({"xsid": pair}, metric="exact_match")) == {0: "cannot tell"}
    assert verdicts(compare({"xsid": pair}, metric="slot_f1")) == {0: "better"}
    apart = compare({"xsid": pair}, metric="slot_f1", score="target")
    assert verdicts(apart) == {0: "worse"}
    output = drawn(compare({"xsid": pair}, metric="slot_f1"), languages=True)
    for part in ("test slot F1 against", "71.0 ±1.0", "61.0 ±1.0 -10.0", "de (target)"):
        assert part in output
    assert "target slot F1" in drawn(apart)
    assert json.loads(compare_json(apart))["comparisons"][0]["score"] == "test_slot_f1_target"
    with pytest.raises(SpecError, match=r"did you mean 'slot_f1'\? \(exact_match, intent_accuracy, slot_f1"):
        compare({"xsid": pair}, metric="slots_f1")


def test_what_is_better_where_it_is_small_is_no_metric_to_compare_by():
    pair = [replace(trial(number, "gold"), score_name="mlm_score") for number in range(2)]
    with pytest.raises(SpecError, match="unknown metric 'perplexity'; allowed: mlm_score"):
        compare({"lm": pair}, baseline="1", metric="perplexity")


@pytest.mark.parametrize("width", [80, 100])
def test_no_figure_is_cut_off_on_a_narrow_terminal(trials, width):
    output = drawn(compare({"ner": trials}), width=width)
    assert "…" not in output
    for whole in ("71.0 ±1.0", "+10.0", "no baseline", "cannot tell,"):
        assert whole in output


def test_markdown_is_one_table_with_its_legend(trials):
    lines = compare_markdown(compare({"ner": trials}), baseline="gold").splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3
    assert {line.count("|") for line in table} == {9}
    assert lines[-1].startswith("* ")


def test_csv_and_json_hold_what_the_table_rounds(trials):
    comparisons = compare({"ner": trials})
    rows = list(csv.DictReader(io.StringIO(compare_csv(comparisons))))
    assert [row["verdict"] for row in rows] == ["better", "cannot tell", "no baseline"]
    assert float(rows[0]["difference"]) == comparisons[0].difference
    assert float(rows[0]["baseline_en"]) == pytest.approx(0.71)
    plain = json.loads(compare_json(comparisons, left_out=["ner: #05 failed"]))
    assert plain["left_out"] == ["ner: #05 failed"]
    assert plain["comparisons"][0]["setting"]["by_seed"] == list(HIGH)
    assert plain["comparisons"][1]["seeds_needed"] == comparisons[1].needed_seeds
    assert plain["comparisons"][2]["baseline"] is None
    assert (plain["comparisons"][0]["score"], plain["comparisons"][0]["setting"]["dev_f1"]) == (
        "test_f1",
        pytest.approx(0.7),
    )
