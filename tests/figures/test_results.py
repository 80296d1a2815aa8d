"""Scores over languages and over seeds, and results as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from raykd.figures.results import Cost, RunResult, Score, Scores


def there_and_back(plain):
    return json.loads(json.dumps(plain))


def run(seed_en: float, seed_de: float, target: float) -> Scores:
    """The scores of one run of two source languages and a target language."""
    source = Score.from_languages({"en": seed_en, "de": seed_de})
    return Scores(
        {
            "dev": {"source": source},
            "test": {"source": source, "target": Score.from_languages({"nl": target})},
        }
    )


def test_every_language_counts_the_same():
    score = Score.from_languages({"en": 0.5, "de": 1.0})
    assert score == Score(mean=0.75, languages_sd=0.25, by_language={"en": 0.5, "de": 1.0}, by_seed=(0.75,))
    assert score.sd is None


def test_seeds_are_one_score_with_its_spread():
    scores = Scores.over_seeds([run(0.5, 1.0, 0.1), run(0.25, 0.25, 0.3)])
    dev, target = scores.get("dev"), scores.get("test", "target")
    assert dev is not None
    assert (dev.mean, dev.by_seed, dev.languages_sd) == (0.5, (0.75, 0.25), 0.125)
    assert dev.by_language == {"en": 0.375, "de": 0.625}
    assert dev.sd == pytest.approx(0.125**0.5)
    assert target is not None
    assert target.by_seed == (0.1, 0.3)
    assert scores.targets == ("nl",)
    assert scores.by_language("test") == {**dev.by_language, "nl": pytest.approx(0.2)}


def test_runs_of_one_language_each_are_one_score_of_all():
    alone = [
        Scores({part: {"source": Score.from_languages({language: mean})} for part in ("dev", "test")})
        for language, mean in (("en", 0.5), ("de", 1.0))
    ]
    together = Score.from_languages({"en": 0.5, "de": 1.0})
    assert Scores.over_languages(alone) == Scores({"dev": {"source": together}, "test": {"source": together}})
    whole = run(0.5, 1.0, 0.1)
    assert Scores.over_languages([whole]) == whole


def test_what_is_not_there_is_none():
    assert Scores().mean("dev") is Scores().get("test", "target") is None
    assert (Scores().by_language("dev"), Scores().targets) == ({}, ())


def test_results_and_costs_survive_json():
    result = RunResult(
        "run-1", run(0.5, 1.0, 0.1), best_epoch=1, epochs=({"epoch": 0, "dev": 0.5},), wall_s=2.5, workers=1,
        parameters=10, bytes=40, weights_sha256="ab",
    )  # fmt: skip
    assert RunResult.from_plain(there_and_back(result.to_plain())) == result
    cost = Cost({"latency_ms": 1.5}, {"hidden_dim": 8}, {"threads": 1})
    assert Cost.from_plain(there_and_back(cost.to_plain())) == cost
    assert cost["latency_ms"] == 1.5


def with_uas(score: Score, uas: dict[str, float]) -> Score:
    return replace(score, beside={"uas": Score.from_languages(uas)})


def test_metrics_beside_the_score_go_with_it():
    first, second = (
        Scores({"dev": {"source": with_uas(Score.from_languages({"en": 0.5}), {"en": uas})}})
        for uas in (0.5, 1.0)
    )
    assert Scores.from_plain(there_and_back(first.to_plain())) == first
    together = Scores.over_seeds([first, second])
    assert (together.mean("dev"), together.mean("dev", beside="uas")) == (0.5, 0.75)
    assert together.by_language("dev", "uas") == {"en": 0.75}
    uas = together.get("dev", "source", "uas")
    assert uas is not None
    assert uas.by_seed == (0.5, 1.0)
    dutch = Scores({"dev": {"source": with_uas(Score.from_languages({"nl": 0.25}), {"nl": 0.5})}})
    both = Scores.over_languages([first, dutch])
    assert both.by_language("dev", "uas") == {"en": 0.5, "nl": 0.5}
    assert both.by_language("dev") == {"en": 0.5, "nl": 0.25}


def test_a_score_has_none_of_the_metrics_that_are_not_beside_it():
    assert run(0.5, 1.0, 0.1).get("dev", "source", "uas") is None
    assert run(0.5, 1.0, 0.1).by_language("dev", "uas") == {}


def test_languages_outside_of_the_mean_are_scored_and_shown():
    score = Score.from_languages({"de": 0.5, "fr": 0.7, "ja": 0.1}).excluding(("ja", "ko"))
    assert (score.mean, score.by_seed, score.outside) == (pytest.approx(0.6), (score.mean,), ("ja",))
    assert score.languages_sd == pytest.approx(0.1)
    assert score.by_language == {"de": 0.5, "fr": 0.7, "ja": 0.1}
    assert Score.from_plain(there_and_back(score.to_plain())) == score
    second_seed = Score.from_languages({"de": 0.7, "fr": 0.9, "ja": 0.9}, ("ja",))
    seeds = Score.over_seeds([score, second_seed])
    assert (seeds.mean, seeds.outside) == (pytest.approx(0.7), ("ja",))
    # Runs of several languages each, of which one has nothing but what is outside.
    together = Score.over_languages([second_seed, Score.from_languages({"es": 0.2})])
    assert (together.mean, together.outside) == (pytest.approx(0.6), ("ja",))
    beside = with_uas(Score.from_languages({"de": 0.5, "ja": 0.1}), {"de": 0.6, "ja": 0.2}).excluding(("ja",))
    assert beside.beside["uas"].mean == 0.6
    assert Score.from_languages({"ja": 0.3}, ("ja",)).mean == 0.3, "there are no others"
