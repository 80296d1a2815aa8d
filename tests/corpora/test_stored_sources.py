"""Stored corpora, found by their files."""

import json
import os

import pytest

from raykd.corpora import stored_sources
from raykd.corpora.builtin import BuiltinSource
from raykd.corpora.conll import ConllSource
from raykd.corpora.corpus import corpus_id, read_corpus
from raykd.corpora.huggingface import HuggingFaceSource
from raykd.corpora.stored_sources import find_corpus, restricted_corpus, source_key
from raykd.errors import CorpusError, StoreError
from raykd.storage.store import Storage


@pytest.fixture
def root(tmp_path):
    return written(tmp_path / "text")


def written(folder):
    folder.mkdir()
    for language in ("da", "sv"):
        for part in ("train", "dev", "test"):
            (folder / f"{language}.{part}").write_text(f"{language}{part} B-PER\nsaw O\n\nno O\n{part} O\n")
    return folder


def config(root, **changes):
    plain = {"source": "conll", "root": str(root), "languages": ["da", "sv"]}
    plain |= {part: f"{{lang}}.{part}*" for part in ("train", "dev", "test")}
    return ConllSource.model_validate_json(json.dumps(plain | changes))


class Reader:
    """Reads, and counts how often."""

    def __init__(self):
        self.count = 0

    def __call__(self, config):
        self.count += 1
        return read_corpus(config)


def test_unchanged_files_are_not_read_again(root, tmp_path):
    store, read = Storage(str(tmp_path / "store")), Reader()
    first, name = find_corpus(config(root), store, read)
    reopened, same = find_corpus(config(root, sampling_alpha=0.5), store, read)
    assert (read.count, same) == (1, name)
    assert name == corpus_id(first) == corpus_id(reopened) == corpus_id(read_corpus(config(root)))
    assert reopened.report == first.report == read_corpus(config(root)).report
    for part, table in first.parts.items():
        assert reopened.parts[part].equals(table)


def change(root):
    (root / "da.train").write_text("Ida B-PER\n")


def touch(root):
    os.utime(root / "sv.test", ns=(1, 1))


def add(root):
    (root / "da.train2").write_text("Ida B-PER\n")


@pytest.mark.parametrize(("edit", "new_corpus"), [(change, True), (touch, False), (add, True)])
def test_changed_files_are_read_again(root, tmp_path, edit, new_corpus):
    store, read = Storage(str(tmp_path / "store")), Reader()
    _, name = find_corpus(config(root), store, read)
    edit(root)
    assert (find_corpus(config(root), store, read)[1] != name) == new_corpus
    assert read.count == 2
    find_corpus(config(root), store, read)
    assert read.count == 2


def test_a_removed_file_is_missing_though_its_corpus_is_stored(root, tmp_path):
    store = Storage(str(tmp_path / "store"))
    find_corpus(config(root), store)
    (root / "da.dev").unlink()
    with pytest.raises(CorpusError, match=r"da\.dev"):
        find_corpus(config(root), store)


def test_another_setting_is_another_key(root):
    assert source_key(config(root)) != source_key(config(root, cap=1))
    hub = {"source": "huggingface", "path": "wikiann", "languages": ["da"]}
    assert source_key(HuggingFaceSource.model_validate_json(json.dumps(hub))) is None


def test_the_built_in_corpus_is_made_again_where_its_rules_changed(tmp_path, monkeypatch):
    store, read = Storage(str(tmp_path / "store")), Reader()
    small = BuiltinSource(source="builtin", languages=("en",), train=3, dev=2, test=2, unlabelled=0)
    _, name = find_corpus(small, store, read)
    assert (find_corpus(small, store, read)[1], read.count) == (name, 1)
    monkeypatch.setattr(BuiltinSource, "rules_checksum", "other rules")
    assert (find_corpus(small, store, read)[1], read.count) == (name, 2)


def test_the_same_text_elsewhere_is_the_same_corpus(root, tmp_path):
    store = Storage(str(tmp_path / "store"))
    copied_root = written(tmp_path / "other")
    assert find_corpus(config(root), store)[1] == find_corpus(config(copied_root), store)[1]
    assert source_key(config(root)) != source_key(config(copied_root))


def test_a_file_that_changes_while_it_is_read_is_read_again(root, tmp_path):
    store, read = Storage(str(tmp_path / "store")), Reader()

    def changing(config):
        corpus = read(config)
        change(root)
        return corpus

    _, name = find_corpus(config(root), store, changing)
    assert find_corpus(config(root), store, read)[1] != name
    assert read.count == 2


def test_a_corpus_that_is_gone_is_read_again_and_a_damaged_one_is_refused(root, tmp_path):
    store, read = Storage(str(tmp_path / "store")), Reader()
    _, name = find_corpus(config(root), store, read)
    store.remove(f"corpora/{name}/corpus.json")
    assert find_corpus(config(root), store, read)[1] == name
    assert read.count == 2
    path = tmp_path / "store" / "corpora" / name / "dev.arrow"
    path.write_bytes(path.read_bytes().replace(b"dadev", b"daDev"))
    with pytest.raises(StoreError, match=r"dev\.arrow: is damaged"):
        find_corpus(config(root), store, read)
    (note,) = (tmp_path / "store/corpora/sources").iterdir()
    note.write_text(note.read_text().replace(name, f"{name[:-1]}x"))
    with pytest.raises(StoreError, match=rf"{note.name}: is damaged"):
        find_corpus(config(root), store, read)


def test_languages_are_taken_from_a_corpus_once(root, tmp_path, monkeypatch):
    store = Storage(str(tmp_path / "store"))
    corpus, name = find_corpus(config(root), store)
    swedish, swedish_id = restricted_corpus(corpus, name, ("sv",), store)
    assert swedish_id == corpus_id(swedish) == corpus_id(corpus.select_languages(["sv"]))
    assert swedish.parts["train"].equals(corpus.select_languages(["sv"]).parts["train"])
    monkeypatch.setattr(stored_sources, "write_corpus", lambda *_: pytest.fail("written again"))
    assert restricted_corpus(corpus, name, ("sv",), store)[1] == swedish_id
    assert restricted_corpus(corpus, name, ("sv", "da"), store) == (corpus, name)
