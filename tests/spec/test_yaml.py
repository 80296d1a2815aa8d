import pytest

from raykd.errors import SpecError
from raykd.spec import load


def read(tmp_path, text, overrides=()):
    file = tmp_path / "x.yaml"
    file.write_text(text, encoding="utf-8")
    return load(file, overrides)


def faults(tmp_path, text, overrides=()):
    with pytest.raises(SpecError) as caught:
        read(tmp_path, text, overrides)
    return [str(fault).removeprefix(f"{tmp_path}/") for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("1e-4", 1e-4),
        ("2e-3", 2e-3),
        ("1E5", 1e5),
        ("-1.5e+3", -1500.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("12", 12),
        ("-7", -7),
        ("+7", 7),
        ("012", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("0b11", "0b11"),
        ("1e", "1e"),
        ("e4", "e4"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("sqlite:///mlflow.db", "sqlite:///mlflow.db"),
    ],
)
def test_words_mean_what_yaml_1_2_says(tmp_path, word, value):
    tree = read(tmp_path, f"a: {word}\nb: [{word}]\n" if word else "a:\nb: [null]\n").tree
    assert tree == {"a": value, "b": [value]}
    assert type(tree["a"]) is type(value)


def test_keys_are_text(tmp_path):
    assert read(tmp_path, "{no: 1, 1: 2, true: 3, 1e-4: 4}").tree == {"no": 1, "1": 2, "true": 3, "1e-4": 4}


def test_every_value_has_its_line(tmp_path):
    document = read(
        tmp_path,
        "# a comment\nname: x\ncorpus:\n  languages:\n    - en\n    - no\n  cap: {en: 3,\n    de: 4}\n",
    )
    assert document.place(("name",)).line == 2
    assert document.place(("corpus", "languages")).line == 4
    assert document.place(("corpus", "languages", 1)).line == 6
    assert document.place(("corpus", "cap", "en")).line == 7
    assert document.place(("corpus", "cap", "de")).line == 8
    assert document.place(("corpus", "cap", "nl")).line == 7  # the nearest part that would hold it
    assert document.place(("student",)).line == 2


def test_an_anchor_gives_separate_values(tmp_path):
    document = read(tmp_path, "a: &x {k: [1, 2]}\nb: *x\n", ["b.k.0=9"])
    assert document.tree == {"a": {"k": [1, 2]}, "b": {"k": [9, 2]}}
    assert document.place(("b", "k", 1)).line == 2


def test_duplicate_keys_are_reported_with_both_lines(tmp_path):
    document = read(tmp_path, "name: x\nstudent:\n  kind: a\n  size: 1\n  kind: [b]\nname: y\n")
    assert [str(fault).removeprefix(f"{tmp_path}/") for fault in document.faults] == [
        "x.yaml:5 student.kind: written twice, on line 3 and on line 5; keep one of them",
        "x.yaml:6 name: written twice, on line 1 and on line 6; keep one of them",
    ]
    assert document.tree == {"name": "x", "student": {"kind": "a", "size": 1}}
    assert document.place(("student", "kind")).line == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.yaml: the file is empty; a sweep file starts with `name:` and `corpus:`"),
        ("# only a comment\n", "x.yaml: the file is empty; a sweep file starts with `name:` and `corpus:`"),
        ("- a\n- b\n", "x.yaml:1: a sweep file is a mapping of settings (`name: …`), got a list"),
        ("hello\n", "x.yaml:1: a sweep file is a mapping of settings (`name: …`), got 'hello'"),
        ("a: 1\n---\nb: 2\n", "x.yaml:2: a second document starts here (`---`); write one file for each"),
        (
            "a: 1\nb: *x\n",
            "x.yaml:2: the alias *x stands before or inside its anchor &x; write the anchor first",
        ),
        (
            "a: &x\n  b: *x\n",
            "x.yaml:2: the alias *x stands before or inside its anchor &x; write the anchor first",
        ),
        ("a: !python 3\n", "x.yaml:1: the tag !python is not supported; write a plain value"),
        ("a: !!map {}\n", "x.yaml:1: the tag tag:yaml.org,2002:map is not supported; write a plain value"),
        (
            "a: 1\n? [b]\n: 2\n",
            "x.yaml:2: a key must be one word; put it in quotes if it holds brackets or `*`",
        ),
        (
            "a: 1\nb: .nan\n",
            "x.yaml:2: .nan is not a finite number; write a finite number, or null for no value",
        ),
        ("a: 1e999\n", "x.yaml:1: 1e999 is too large for a floating-point number; write a smaller one"),
    ],
)
def test_what_is_not_a_sweep_file_is_refused(tmp_path, text, message):
    assert faults(tmp_path, text) == [message]


def test_broken_syntax_is_reported_with_its_line_and_column(tmp_path):
    (tab,) = faults(tmp_path, "a: 1\nb:\n\tc: 2\n")
    assert tab.startswith("x.yaml:3: not YAML: found character a tab")
    assert tab.endswith("column 1; indent with spaces, never tabs")
    (bracket,) = faults(tmp_path, "a: [1, 2\nb: 2\n")
    assert bracket.startswith("x.yaml:2: not YAML: expected ',' or ']'")
    assert "which starts on line 1" in bracket


def test_bytes_that_are_not_text_are_refused(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"name: \xff\n")
    with pytest.raises(SpecError, match=r"x\.yaml: not UTF-8 text \(byte 6\)"):
        load(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_bytes(b"name: a\x00\n")
    with pytest.raises(SpecError, match=r"x\.yaml: not YAML"):
        load(tmp_path / "x.yaml")


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfname: a\n")
    assert load(tmp_path / "x.yaml").tree == {"name": "a"}


def test_a_missing_file_names_its_neighbour(tmp_path):
    (tmp_path / "quickstart.yaml").write_text("name: x\n")
    with pytest.raises(SpecError, match=r"qickstart\.yaml: no such file; did you mean .*/quickstart\.yaml\?"):
        load(tmp_path / "qickstart.yaml")
    with pytest.raises(SpecError, match="a folder, not a sweep file"):
        load(tmp_path)
    with pytest.raises(SpecError, match="no such file; give the path"):
        load(tmp_path / "nowhere" / "zzz")


BASE = "student: {kind: bilstm, hidden_dim: {choice: [1, 2]}}\nteachers: [{a: 1}, {a: 2}]\nname: x\n"


@pytest.mark.parametrize(
    ("override", "parts", "value"),
    [
        ("student.hidden_dim=64", ("student", "hidden_dim"), 64),
        ("student.hidden_dim={int: [1, 8]}", ("student", "hidden_dim"), {"int": [1, 8]}),
        ("student.hidden_dim.choice.1=3", ("student", "hidden_dim"), {"choice": [1, 3]}),
        ("teachers.1.a=no", ("teachers", 1, "a"), "no"),
        ("corpus.root=s3://bucket/a=b", ("corpus", "root"), "s3://bucket/a=b"),
        ("name=", ("name",), None),
        ("training.learning_rate=1e-4", ("training", "learning_rate"), 1e-4),
    ],
)
def test_overrides(tmp_path, override, parts, value):
    document = read(tmp_path, BASE, [override])
    node = document.tree
    for part in parts:
        node = node[part]
    assert node == value
    key = tuple(int(part) if part.isdigit() else part for part in override.partition("=")[0].split("."))
    assert document.place(key).line is None
    assert document.fault(key, "wrong").file == "--set"


def test_later_overrides_win(tmp_path):
    assert read(tmp_path, BASE, ["name=a", "name=b"]).tree["name"] == "b"


def test_an_override_corrects_a_key_written_twice(tmp_path):
    assert read(tmp_path, "name: x\nname: y\n", ["name=z"]).faults == ()


def test_all_overrides_that_cannot_be_applied_are_reported(tmp_path):
    wrong = ["student", "=3", "name.x=3", "teachers.2.a=3", "a=[1", "a={b: 1, b: 2}", "a..b=3"]
    messages = faults(tmp_path, BASE, wrong)
    assert [line.partition(": ")[0] for line in messages] == [
        f"--set {override}".partition(": ")[0] for override in wrong
    ]
    assert "write key=value" in messages[0]
    assert "name holds 'x', which has no 'x' in it" in messages[2]
    assert "teachers is a list of 2; name one by its index, 0 to 1" in messages[3]
    assert "not YAML" in messages[4]
    assert "written twice" in messages[5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: " + "[" * 20_000, "more than 50 levels deep; is it a sweep file?"),
        ("a: " + "{b: " * 60 + "1" + "}" * 60, "more than 50 levels deep"),
        ("\n".join(f"k{i}: 1" for i in range(5_000)), "a mapping of more than 1,000 keys"),
        ("a: [" + "1, " * 30_000 + "1]", "more than 20,000 values"),
        ("a: 1\n" * 300_000, "the file has 1,500,000 characters"),
        ("a: " + "9" * 5_000, "is too large for a whole number"),
        ("a: 0x" + "f" * 300, "is too large for a whole number"),
        ("a: 9007199254740993", "write one up to 9,007,199,254,740,992"),
    ],
)
def test_what_no_one_writes_by_hand_is_refused_at_once(tmp_path, text, message):
    assert message in str(faults(tmp_path, text))


def test_aliases_of_aliases_are_counted_before_they_are_walked(tmp_path):
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "more than 20,000 values up to here" in str(faults(tmp_path, "\n".join(lines)))
    nested = ["x0: &x0 [a]", *(f"x{i}: &x{i} [*x{i - 1}]" for i in range(1, 60))]
    assert "more than 50 levels deep" in str(faults(tmp_path, "\n".join(nested)))
