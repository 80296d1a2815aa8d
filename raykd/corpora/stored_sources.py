"""Stored corpora by their sources: a corpus that was read once is opened, not read again.

    <store>/corpora/sources/<key>.json      the id of the corpus that was read from there

A key is a hash of the configuration, the size and modification time of all files that it names, and the checksums of
its models of parts of speech. So a changed, added or removed file changes the key. A file replaced by one of the same
size and time is not noticed; then remove `corpora/sources`. Two keys may lead to one corpus. The key of the built-in
corpus is a hash of the rules that generate it.
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
"""Version of the readers: raise it when reading, selection or conversion give other sentences for the same files."""


def find_corpus(
    config: SourceConfig, storage: Storage, read: Callable[[Any], Corpus] = read_corpus
) -> tuple[Corpus, str]:
    """Return the corpus of a configuration from the store, reading and storing it first if necessary.

    Args:
        config: Settings of the corpus.
        storage: The store.
        read: Function that reads the corpus; not called if the same files were read into this store before.

    Returns:
        The stored corpus and its id.

    Raises:
        CorpusError: The corpus cannot be read.
        StoreError: The corpus cannot be stored, or is damaged in the store.
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
    """Return the corpus of some languages from the store, making it first if necessary.

    Args:
        corpus: Corpus of more languages.
        corpus_id: Id of `corpus`.
        languages: Languages to keep.
        storage: The store.

    Returns:
        The stored corpus and its id.
    """
    if set(languages) == set(corpus.languages):
        return corpus, corpus_id
    key = identity("source", {"format": FORMAT, "corpus": corpus_id, "languages": sorted(languages)})
    name = find_noted_corpus(storage, key)
    if name is None:
        name = write_corpus(corpus.select_languages(languages), storage)
        note_corpus(storage, key, name)
    return open_corpus(storage, name), name


def source_key(config: SourceConfig) -> str | None:
    """Return the key of the files of a configuration, or of the rules of a generated corpus; None without either.

    Args:
        config: Settings of the corpus.

    Raises:
        CorpusError: A file or a model of parts of speech is missing.
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
    """Return the id of the stored corpus of a key; None without one.

    Args:
        storage: The store.
        key: Key from `source_key`.

    Raises:
        StoreError: The note of the corpus is damaged.
    """
    name = storage.find_json(_note_file(key), _corpus_id_in)
    return name if name is not None and storage.exists(f"corpora/{name}/{CORPUS}") else None


def note_corpus(storage: Storage, key: str, name: str) -> None:
    """Write the note that `key` leads to the corpus `name`.

    Args:
        storage: The store.
        key: Key from `source_key`.
        name: Id of the corpus.
    """
    storage.write_json(_note_file(key), {"corpus_id": name})


def read_noted_corpus(storage: Storage, key: str) -> str:
    """Return the id of the corpus in a note.

    Args:
        storage: The store.
        key: Key from `source_key`.

    Raises:
        StoreError: The note is missing or damaged.
    """
    return storage.read_json(_note_file(key), _corpus_id_in)


def _corpus_id_in(plain: Mapping[str, Any]) -> str:
    return str(plain["corpus_id"])


def _note_file(key: str) -> str:
    return f"corpora/{SOURCES}/{key}.json"
