"""Corpora in the store by where they came from: what was read once is opened again, not read again.

    <store>/corpora/sources/<key>.json      the id of the corpus that was read from there

A key is over the configuration, the size and time of last change of every file that it names, and the checksums of its
models of parts of speech, so a changed, added or removed file has another key. A file that was replaced by one of the
same size and time is not noticed: then remove `corpora/sources`. Two keys may lead to one corpus. The built-in corpus
is known by the rules that it is made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from raykd.corpora.corpus import FORMAT, Corpus, open_corpus, read_corpus, write_corpus
from raykd.corpora.files import list_files
from raykd.corpora.predicted_pos import model_checksums
from raykd.corpora.source import FilesConfig, SourceConfig
from raykd.identity import identity
from raykd.storage.layout import CORPUS, SOURCES
from raykd.storage.store import Storage

READER_VERSION = 3
"""To be raised when readers, selection or conversion give other sentences for the same files."""


def find_corpus(
    config: SourceConfig, storage: Storage, read: Callable[[Any], Corpus] = read_corpus
) -> tuple[Corpus, str]:
    """The corpus that `config` describes, in the store, and its id. `read` is called unless the same files were read
    into this store before.

    Raises:
        CorpusError: the corpus cannot be read.
        StoreError: it cannot be stored, or is damaged there.
    """
    key = source_key(config)
    name = None if key is None else find_noted_corpus(storage, key)
    if name is None:
        name = write_corpus(read(config), storage)
        # A file that changed while it was read is read again the next time.
        if key is not None and source_key(config) == key:
            note_corpus(storage, key, name)
    return open_corpus(storage, name), name


def restricted_corpus(
    corpus: Corpus, corpus_id: str, languages: tuple[str, ...], storage: Storage
) -> tuple[Corpus, str]:
    """The corpus of some languages of `corpus`, in the store, and its id; it is made once."""
    if set(languages) == set(corpus.languages):
        return corpus, corpus_id
    key = identity("source", {"format": FORMAT, "corpus": corpus_id, "languages": sorted(languages)})
    name = find_noted_corpus(storage, key)
    if name is None:
        name = write_corpus(corpus.select_languages(languages), storage)
        note_corpus(storage, key, name)
    return open_corpus(storage, name), name


def source_key(config: SourceConfig) -> str | None:
    """The key of the files that `config` describes, or of what it is made from; None for a source of which neither is
    known.

    Raises:
        CorpusError: a file is missing, or a model of parts of speech.
    """
    # How languages are sampled has no effect on what is read.
    plain = config.model_dump(mode="json", exclude={"sampling_alpha"})
    decides = {"format": FORMAT, "reading": READER_VERSION, "config": plain}
    if (rules := config.rules_checksum) is not None:
        return identity("source", decides | {"made_from": rules})
    if not isinstance(config, FilesConfig):
        return None
    storage = Storage(config.root)
    files = [[part, language, name, *storage.stamp(name)] for part, language, name in list_files(config)]
    models = model_checksums(config)
    decides |= {"config": plain | {"root": storage.uri}, "files": files}
    return identity("source", decides | ({"models": models} if models else {}))


def find_noted_corpus(storage: Storage, key: str) -> str | None:
    """The id of the stored corpus that `key` leads to; None where there is none.

    Raises:
        StoreError: the note of it is damaged.
    """
    name = storage.find_json(_note_file(key), _corpus_id_in)
    return name if name is not None and storage.exists(f"corpora/{name}/{CORPUS}") else None


def note_corpus(storage: Storage, key: str, name: str) -> None:
    """Note that `key` leads to the corpus `name`."""
    storage.write_json(_note_file(key), {"corpus_id": name})


def read_noted_corpus(storage: Storage, key: str) -> str:
    """The id of the corpus that was noted. Raises StoreError where the note is missing or damaged."""
    return storage.read_json(_note_file(key), _corpus_id_in)


def _corpus_id_in(plain: Mapping[str, Any]) -> str:
    return str(plain["corpus_id"])


def _note_file(key: str) -> str:
    return f"corpora/{SOURCES}/{key}.json"
