"""Extending sweep files: inherited settings, replaced settings, and the places of faults."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Literal

import pytest
from pydantic import Field

from raykd.errors import SpecError
from raykd.spec import Frozen, check, load

BASE = """\
# what several sweeps share
corpus: {source: conll, root: data, cap: 9}
student:
  embedding_dim: {choice: [8, 16]}
  hidden_dim: 8
search: {trials: 16, sampler: tpe}
variants:
  small:
    corpus: {source: builtin}
    search: {trials: 2}
  tiny: {search: {trials: 1}}
"""
TABLE = """\
# one table
name: table
extends: base/wikiann.yaml
corpus: {cap: 5}
student: {embedding_dim: 4}
variants:
  small: {search: {sampler: grid}}
  other: {search: {trials: 3}}
"""


class Corpus(Frozen):
    source: Literal["builtin", "conll"]
    root: str = ""
    cap: Annotated[int, Field(ge=1)] = 1


class Student(Frozen):
    embedding_dim: Annotated[int, Field(ge=1)]
    hidden_dim: Annotated[int, Field(ge=1)]


class Search(Frozen):
    trials: Annotated[int, Field(ge=1)]
    sampler: Literal["tpe", "grid"] = "tpe"


class Sweep(Frozen):
    name: str
    corpus: Corpus
    student: Student
    search: Search


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write files, named by path and text, into the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(files: dict[str, str]) -> None:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")

    write({"base/wikiann.yaml": BASE, "table.yaml": TABLE})
    return write


def refused(read) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read()
    return [str(fault) for fault in caught.value.faults]


def faults(file: str, **options) -> list[str]:
    return refused(lambda: check(load(file, **options), Sweep))


@pytest.mark.usefixtures("write")
class TestInheritance:
    def test_a_file_is_laid_over_the_one_that_it_extends(self):
        document = load("table.yaml")
        assert document.tree == {
            "name": "table",
            "corpus": {"source": "conll", "root": "data", "cap": 5},
            "student": {"embedding_dim": 4, "hidden_dim": 8},
            "search": {"trials": 16, "sampler": "tpe"},
        }
        check(document, Sweep)

    def test_the_order_of_the_keys_is_that_of_the_base(self):
        assert list(load("table.yaml").tree) == ["corpus", "student", "search", "name"]

    def test_variants_are_merged_by_name(self):
        assert load("table.yaml").variants == ("small", "tiny", "other")
        small = load("table.yaml", variants=["small"]).tree
        assert small["name"] == "table-small"
        assert small["corpus"] == {"source": "builtin"}
        assert small["search"] == {"trials": 2, "sampler": "grid"}
        assert load("table.yaml", variants=["tiny"]).tree["search"]["trials"] == 1
        assert load("table.yaml", variants=["other"]).tree["search"]["trials"] == 3

    def test_variants_that_the_file_writes_itself_are_not_inherited(self):
        document = load("table.yaml")
        assert [document.inherits(name) for name in document.variants] == [False, True, False]
        assert not load("base/wikiann.yaml").inherits("tiny")

    def test_overrides_come_last(self):
        document = load("table.yaml", ["search.trials=7", "corpus.cap=3"], variants=["small"])
        assert document.tree["search"]["trials"] == 7
        assert document.tree["corpus"] == {"source": "builtin", "cap": 3}
        assert document.fault(("search", "trials"), "wrong").file == "--set"

    def test_a_search_a_kind_and_a_source_replace_the_whole_value(self, write):
        write(
            {"table.yaml": TABLE.replace("{cap: 5}", "{source: builtin}").replace(": 4", ": {int: [1, 2]}")}
        )
        tree = load("table.yaml").tree
        assert tree["corpus"] == {"source": "builtin"}
        assert tree["student"]["embedding_dim"] == {"int": [1, 2]}

    def test_names_of_variants_are_not_taken_for_kinds(self, write):
        write({"table.yaml": TABLE.replace("  other:", "  source:")})
        assert load("table.yaml").variants == ("small", "tiny", "source")

    def test_chains(self, write):
        write({"sweeps/one/deep.yaml": "extends: ../../table.yaml\nname: deep\nsearch: {trials: 4}\n"})
        tree = load("sweeps/one/deep.yaml").tree
        assert (tree["name"], tree["search"], tree["corpus"]["cap"]) == (
            "deep", {"trials": 4, "sampler": "tpe"}, 5
        )  # fmt: skip

    def test_the_name_may_be_inherited(self, write):
        write({"again.yaml": "extends: table.yaml\n"})
        assert load("again.yaml").tree == load("table.yaml").tree
        assert load("again.yaml", variants=["tiny"]).tree["name"] == "table-tiny"

    def test_paths_are_relative_to_the_file_that_names_them(self, tmp_path, monkeypatch):
        (tmp_path / "elsewhere").mkdir()
        shutil.copytree(tmp_path / "base", tmp_path / "job" / "base")
        shutil.copy(tmp_path / "table.yaml", tmp_path / "job")
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert load("../job/table.yaml").tree == load(tmp_path / "table.yaml").tree

    def test_a_linked_folder_is_followed(self, tmp_path):
        os.makedirs("far/deep")
        (tmp_path / "far/deep/table.yaml").write_text(TABLE.replace("base/", "../"))
        (tmp_path / "far/wikiann.yaml").write_text(BASE)
        os.symlink("far/deep", "link")
        assert load("link/table.yaml").tree == load("table.yaml").tree


class TestFaults:
    def test_a_fault_names_the_file_in_which_the_value_was_written(self, write):
        write(
            {
                "base/wikiann.yaml": BASE.replace("hidden_dim: 8", "hidden_dim: 0").replace("tpe", "tpee"),
                "table.yaml": TABLE.replace("cap: 5", "cap: 0"),
            }
        )
        assert faults("table.yaml") == [
            "table.yaml:4 corpus.cap: got 0; must be at least 1",
            "base/wikiann.yaml:5 student.hidden_dim: got 0; must be at least 1",
            "base/wikiann.yaml:6 search.sampler: unknown 'tpee'; did you mean 'tpe'? (tpe, grid)",
        ]

    def test_a_fault_of_an_inherited_variant(self, write):
        write({"base/wikiann.yaml": BASE.replace("trials: 2", "trials: 0")})
        assert faults("table.yaml", variants=["small"]) == [
            "base/wikiann.yaml:10 search.trials: got 0; must be at least 1"
        ]

    def test_a_missing_key_is_reported_where_it_would_be_written(self, write):
        write({"base/wikiann.yaml": BASE.replace("  hidden_dim: 8\n", "")})
        assert faults("table.yaml") == ["table.yaml:5 student.hidden_dim: missing; write `hidden_dim: …`"]

    def test_a_replaced_line_is_never_named(self, write):
        write({"table.yaml": TABLE.replace("{cap: 5}", "{source: builtin}")})
        assert load("table.yaml").place(("corpus", "cap")) == ("table.yaml", 4)

    def test_the_name_is_required(self, write):
        write({"table.yaml": "# no name\nextends: base/wikiann.yaml\n"})
        assert faults("table.yaml") == ["table.yaml:2 name: missing; write `name: …`"]
        assert faults("table.yaml", variants=["tiny"]) == ["table.yaml:2 name: missing; write `name: …`"]

    def test_a_key_written_twice_in_the_base(self, write):
        write({"base/wikiann.yaml": BASE + "search: {trials: 3}\n"})
        (fault,) = faults("table.yaml")
        assert fault.startswith("base/wikiann.yaml:12 search: written twice, on line 6 and on line 12")

    def test_a_base_that_is_not_yaml(self, write):
        write({"base/wikiann.yaml": "a: [1\n"})
        (fault,) = faults("table.yaml")
        assert fault.startswith("base/wikiann.yaml:2: not YAML")

    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("base/wikian.yaml", "no such file base/wikian.yaml; did you mean base/wikiann.yaml?"),
            ("bse/wikiann.yaml", "no such file bse/wikiann.yaml; did you mean base/wikiann.yaml?"),
            ("zzz", "no such file zzz; give its path relative to this file"),
            ("base", "base is a folder; name one YAML file in it"),
            ("3", "must be the path of one sweep file, got 3; write `extends: base.yaml`"),
            ("[a.yaml]", "must be the path of one sweep file, got ['a.yaml']; write `extends: base.yaml`"),
            ("", "must be the path of one sweep file, got None; write `extends: base.yaml`"),
        ],
    )
    def test_a_base_that_is_not_there(self, write, written, message):
        write({"table.yaml": TABLE.replace("base/wikiann.yaml", written)})
        assert faults("table.yaml") == [f"table.yaml:3 extends: {message}"]

    def test_the_nearest_file_is_given_as_it_must_be_written(self, write):
        write(
            {"sweeps/paper/table.yaml": TABLE.replace("base/", "../bases/"), "sweeps/base/wikiann.yaml": BASE}
        )
        assert faults("sweeps/paper/table.yaml") == [
            "sweeps/paper/table.yaml:3 extends: no such file sweeps/bases/wikiann.yaml; "
            "did you mean ../base/wikiann.yaml?"
        ]

    def test_a_circle_is_refused_with_all_its_files(self, write):
        write({"base/wikiann.yaml": f"extends: ../table.yaml\n{BASE}"})
        assert faults("table.yaml") == [
            "base/wikiann.yaml:1 extends: the files extend each other in a circle: "
            "table.yaml extends base/wikiann.yaml extends table.yaml; remove one `extends`"
        ]
        write({"table.yaml": "name: x\nextends: ./table.yaml\n"})
        (fault,) = faults("table.yaml")
        assert "table.yaml extends table.yaml" in fault

    @pytest.mark.usefixtures("write")
    @pytest.mark.parametrize(
        ("override", "hint"),
        [
            ("extends=base.yaml", "write it in the file"),
            ("variants.small={}", "use --variant NAME"),
            (
                "variants.small.corpus.cap=100",
                "--set is applied after the variants: write --small --set corpus.cap=100",
            ),
            (
                "variants.tiny.student={kind: bilstm}",
                "--set is applied after the variants: write --variant tiny --set 'student={kind: bilstm}'",
            ),
        ],
    )
    def test_what_the_grammar_reads_cannot_be_set_by_hand(self, override, hint):
        key = override.partition("=")[0].partition(".")[0]
        assert faults("table.yaml", overrides=[override]) == [
            f"--set {override}: {key} cannot be set on the command line; {hint}"
        ]

    def test_a_misspelt_extends(self, write):
        write({"table.yaml": TABLE.replace("extends", "extend")})
        first, *_ = (fault for fault in faults("table.yaml") if "extend" in fault)
        assert first.startswith("table.yaml:3 extend: unknown key 'extend'; did you mean 'extends'?")
