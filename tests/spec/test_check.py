# ruff: noqa: E501  one case per line: what is written, and the message
import json
from typing import Annotated, Literal

import pytest
from pydantic import Field, model_validator

from raykd.errors import SpecError
from raykd.spec import Frozen, check, load

Positive = Annotated[int, Field(ge=1)]
Temperature = Annotated[float, Field(gt=0)]


class Corpus(Frozen):
    source: Literal["builtin", "conll"]
    languages: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] = ("en",)
    cap: int | dict[str, int] | None = None


class Word(Frozen):
    kind: Literal["word"] = "word"
    min_count: Positive = 1


class WordPiece(Frozen):
    kind: Literal["wordpiece"] = "wordpiece"
    size: Positive = 8000


class Student(Frozen):
    kind: Literal["bilstm"]
    embedding_dim: Positive
    hidden_dim: Positive = 64
    decoder: Literal["crf", "maxent"] = "crf"
    vocabulary: Annotated[Word | WordPiece, Field(discriminator="kind")] = Word()


class TopWK(Frozen):
    kind: Literal["top_wk"]
    k: Positive
    temperature: Temperature = 1.0


class Posterior(Frozen):
    kind: Literal["posterior"]
    temperature: Temperature = 1.0


class Training(Frozen):
    learning_rate: Annotated[float, Field(gt=0, lt=1)] = 2e-3
    batch_tokens: Positive = 2000
    nesterov: bool = False


class Schedule(Frozen):
    epochs: Positive = 12
    horizon: Positive = 12

    @model_validator(mode="after")
    def _order(self):
        if self.epochs > self.horizon:
            raise ValueError(f"epochs {self.epochs} exceed horizon {self.horizon}; lower epochs")
        return self


class Sweep(Frozen):
    name: Annotated[
        str, Field(min_length=1, pattern="^[a-z]*$", description="what the sweep is called. Longer.")
    ]
    corpus: Corpus
    student: Student
    objective: Annotated[TopWK | Posterior, Field(discriminator="kind")]
    teachers: tuple[Student, ...] = ()
    training: Training = Training()
    schedule: Schedule = Schedule()


GOOD = """\
name: good
corpus: {source: builtin, languages: [en, no]}
student:
  kind: bilstm
  embedding_dim: {choice: [16, 32]}
  hidden_dim: {int: [16, 64], log: true}
  vocabulary: {choice: [{kind: word}, {kind: wordpiece, size: {choice: [100, 200]}}]}
objective:
  choice:
    - {kind: top_wk, k: {int: [1, 10]}, temperature: {choice: [1, 2, 3]}}
    - {kind: posterior, temperature: {float: [0.5, 2.0]}}
training: {learning_rate: 1e-4}
"""


def written(tmp_path, text, overrides=()):
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, overrides)


def faults(tmp_path, text, overrides=(), **options):
    with pytest.raises(SpecError) as caught:
        check(written(tmp_path, text, overrides), Sweep, **options)
    return [str(fault).removeprefix(f"{tmp_path}/") for fault in caught.value.faults]


def good_but(old, new):
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_a_good_file_passes(tmp_path):
    check(written(tmp_path, GOOD), Sweep)


def test_five_faults_of_different_sorts_are_reported_together(tmp_path):
    text = """\
name: broken
corpus: {source: builtin, langauges: [en]}
student:
  kind: bilstm
  embedding_dim: {choice: [16, 0]}
  decoder: {choice: [crf, maxnt]}
  hidden_dim: {int: [64, 16]}
  kind: again
objective:
  choice:
    - {kind: top_wk, k: {int: [0, 10]}}
    - {kind: postrior}
training: {batch_tokens: 12_000, epochs: 3, nesterov: yes}
"""
    assert faults(tmp_path, text) == [
        "x.yaml:2 corpus.langauges: unknown key 'langauges'; did you mean 'languages'? (cap, languages, source)",
        "x.yaml:5 student.embedding_dim.choice.1: got 0; must be at least 1",
        "x.yaml:6 student.decoder.choice.1: unknown 'maxnt'; did you mean 'maxent'? (crf, maxent)",
        "x.yaml:7 student.hidden_dim: low 64 is above high 16; write {int: [16, 64]}",
        "x.yaml:8 student.kind: written twice, on line 4 and on line 8; keep one of them",
        "x.yaml:11 objective.choice.0.k: got 0; must be at least 1",
        "x.yaml:12 objective.choice.1.kind: unknown 'postrior'; did you mean 'posterior'? (posterior, top_wk)",
        "x.yaml:13 training.batch_tokens: got '12_000' (text); expected a whole number; write 12000",
        "x.yaml:13 training.epochs: unknown key 'epochs' here; it belongs at schedule.epochs"
        " (here: batch_tokens, learning_rate, nesterov)",
        "x.yaml:13 training.nesterov: got 'yes' (text); expected true or false;"
        " YAML 1.2 reads 'yes' as text: write true",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: good\n", "", "x.yaml:1 name: missing; write `name: …` (what the sweep is called)"),
        ("  kind: bilstm\n", "", "x.yaml:3 student.kind: missing; write `kind: …`"),
        ("name: good", "name: 3", "x.yaml:1 name: got 3; expected text; write '3' in quotes"),
        ("name: good", "name: {choice: [a, 3]}", "x.yaml:1 name.choice.1: got 3; expected text; write '3' in quotes"),
        ("name: good", "name: ''", "x.yaml:1 name: got '' (text); must not be empty"),
        ("name: good", "name: A b", "x.yaml:1 name: got 'A b' (text); must match ^[a-z]*$"),
        ("[en, no]", "{en: 1}", 'x.yaml:2 corpus.languages: got {"en": 1}; expected a list'),
        ("[en, no]", "[en, 3]", "x.yaml:2 corpus.languages.1: got 3; expected text; write '3' in quotes"),
        ("[en, no]", "[]", "x.yaml:2 corpus.languages: got []; must not be empty"),
        ("[en, no]", "[a, b, c]", 'x.yaml:2 corpus.languages: got ["a", "b", "c"]; must have at most 2 items'),
        ("source: builtin", "source: bultin", "x.yaml:2 corpus.source: unknown 'bultin'; did you mean 'builtin'? (builtin, conll)"),
        ("source: builtin", "source: xyz", "x.yaml:2 corpus.source: unknown 'xyz'; allowed: builtin, conll"),
        ("[en, no]}", "[en], cap: x}", "x.yaml:2 corpus.cap: got 'x' (text); expected a whole number or a mapping"),
        ("[en, no]}", "[en], cap: {en: x}}", "x.yaml:2 corpus.cap.en: got 'x' (text); expected a whole number"),
        ("learning_rate: 1e-4", "learning_rate: 1", "x.yaml:12 training.learning_rate: got 1; must be below 1"),
        ("learning_rate: 1e-4", "learning_rate: fast", "x.yaml:12 training.learning_rate: got 'fast' (text); expected a number"),
        ("learning_rate: 1e-4", "batch_tokens: 2000.0", "x.yaml:12 training.batch_tokens: got 2000.0; expected a whole number; write 2000"),
        ("training: {learning_rate: 1e-4}", "training: 3", "x.yaml:12 training: got 3; expected a mapping"),
        ("training: {learning_rate: 1e-4}", "training:", "x.yaml:12 training: got null; expected a mapping"),
        ("choice: [1, 2, 3]", "choice: [1, 0]", "x.yaml:10 objective.choice.0.temperature.choice.1: got 0; must be above 0"),
        ("float: [0.5, 2.0]", "float: [0.0, 2.0]", "x.yaml:11 objective.choice.1.temperature: got 0.0; must be above 0"),
        ("{kind: posterior, ", "{", "x.yaml:11 objective.choice.1.kind: missing; write `kind: …`, one of posterior, top_wk"),
        ("kind: posterior, ", "kind: posterior, k: 3, ", "x.yaml:11 objective.choice.1.k: unknown key 'k' of this kind; kind top_wk has it (here: kind, temperature)"),
        ("size: {choice: [100, 200]}", "size: {choice: []}", "x.yaml:7 student.vocabulary.choice.1.size: choice has no options; list at least one"),
        ("size: {choice: [100, 200]}", "sizes: 3", "x.yaml:7 student.vocabulary.choice.1.sizes: unknown key 'sizes'; did you mean 'size'? (kind, size)"),
        ("int: [16, 64], log: true", "int: [0, 64], log: true", "x.yaml:6 student.hidden_dim: a log range must start above 0, got low 0; raise low or remove log"),
        ("int: [16, 64], log: true", "int: [1, 2], float: [1, 2]", "x.yaml:6 student.hidden_dim: a search has one of choice, int, float, got int and float; keep one of them"),
        ("training: {learning_rate: 1e-4}", "schedule: {epochs: 20}", "x.yaml:12 schedule: epochs 20 exceed horizon 12; lower epochs"),
        ("training: {learning_rate: 1e-4}", "teachers: [{kind: bilstm, embedding_dim: 0}]", "x.yaml:12 teachers.0.embedding_dim: got 0; must be at least 1"),
    ],
)  # fmt: skip
def test_one_fault_is_one_line(tmp_path, old, new, message):
    assert faults(tmp_path, good_but(old, new)) == [message]


def test_both_ends_of_a_range_are_checked(tmp_path):
    assert faults(tmp_path, good_but("int: [16, 64], log: true", "float: [16, 64.5]")) == [
        "x.yaml:6 student.hidden_dim: got 16.0; expected a whole number; write 16",
        "x.yaml:6 student.hidden_dim: got 64.5; expected a whole number",
    ]


def test_an_unknown_key_is_reported_although_its_value_is_wrong_too(tmp_path):
    text = good_but("training: {learning_rate: 1e-4}", "studnt: {embedding_dim: {choice: []}}")
    key, value = faults(tmp_path, text)
    assert key.startswith("x.yaml:12 studnt: unknown key 'studnt'; did you mean 'student'? (corpus, ")
    assert value == "x.yaml:12 studnt.embedding_dim: choice has no options; list at least one"


def test_a_misspelt_required_key_is_one_fault(tmp_path):
    assert faults(tmp_path, good_but("embedding_dim:", "embeding_dim:")) == [
        "x.yaml:5 student.embeding_dim: unknown key 'embeding_dim'; did you mean 'embedding_dim'? "
        "(decoder, embedding_dim, hidden_dim, kind, vocabulary)"
    ]


def test_a_choice_inside_a_choice_is_checked_at_every_leaf(tmp_path):
    text = good_but(
        "    - {kind: posterior, temperature: {float: [0.5, 2.0]}}",
        "    - choice:\n"
        "      - {kind: posterior, temperature: {choice: [1, {choice: [2, -1]}]}}\n"
        "      - {kind: top_wk, k: {int: [-3, -2]}}",
    )
    assert faults(tmp_path, text) == [
        "x.yaml:12 objective.choice.1.choice.0.temperature.choice.1.choice.1: got -1; must be above 0",
        "x.yaml:13 objective.choice.1.choice.1.k: got -3; must be at least 1",
        "x.yaml:13 objective.choice.1.choice.1.k: got -2; must be at least 1",
    ]


def test_a_fault_set_by_hand_is_reported_as_such(tmp_path):
    lines = faults(tmp_path, GOOD, ["student.kind=bilstn", "objective.choice.0.k=0"])
    assert lines == [
        "--set objective.choice.0.k: got 0; must be at least 1",
        "--set student.kind: unknown 'bilstn'; did you mean 'bilstm'? (bilstm)",
    ]


def test_further_checks_are_reported_once_and_with_lines(tmp_path):
    checked = []

    def extra(sweep):
        checked.append(sweep)
        if sweep.objective.kind == "top_wk" and sweep.objective.k > 5:
            return [(("objective", "k"), f"k {sweep.objective.k} exceeds the 5 paths there are; lower it")]
        return []

    assert faults(tmp_path, GOOD, extra=extra) == [
        "x.yaml:10 objective.choice.0.k: k 10 exceeds the 5 paths there are; lower it"
    ]
    assert {config.student.embedding_dim for config in checked} == {16, 32}
    assert {config.student.hidden_dim for config in checked} == {16, 64}
    assert all(isinstance(config, Sweep) for config in checked)


def test_a_fault_in_several_alternatives_is_reported_once(tmp_path):
    assert faults(tmp_path, good_but("name: good", "name: 3")) == [
        "x.yaml:1 name: got 3; expected text; write '3' in quotes"
    ]


def test_of_an_empty_mapping_every_missing_key_is_reported(tmp_path):
    lines = faults(tmp_path, "training: {}\n")
    assert [line.split()[1] for line in lines] == ["corpus:", "name:", "objective:", "student:"]


def test_configuration_is_frozen_and_strict():
    student = Student.model_validate_json(json.dumps({"kind": "bilstm", "embedding_dim": 3}))
    with pytest.raises(ValueError, match="frozen"):
        student.embedding_dim = 4
    with pytest.raises(ValueError, match="integer"):
        Student(kind="bilstm", embedding_dim="3")


def test_a_key_of_another_kind_names_the_kinds_that_have_it(tmp_path):
    (tmp_path / "x.yaml").write_text(
        "name: x\ncorpus: {source: conll}\n"
        "student: {kind: bilstm, embedding_dim: 4, vocabulary: {kind: word, size: 9}}\n"
        "objective: {kind: posterior, k: 3}\n"
    )
    with pytest.raises(SpecError) as refused:
        check(load(tmp_path / "x.yaml", ()), Sweep)
    messages = [fault.message for fault in refused.value.faults]
    assert "unknown key 'size' of this kind; kind wordpiece has it (here: kind, min_count)" in messages
    assert "unknown key 'k' of this kind; kind top_wk has it (here: kind, temperature)" in messages
