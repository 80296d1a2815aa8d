"""Checkpoints that are given: where their files are, their identity, and how much they read at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raykd.corpora.pretrained import require_tokenizer
from raykd.errors import MissingError, StoreError
from raykd.identity import PlainObject
from raykd.spec.messages import nearest_words
from raykd.storage.digests import path_sha256

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel

# Transformers writes this where a tokenizer states no limit.
_NO_LIMIT = 10**6

# What decides a checkpoint's predictions: weights, configuration (label names too) and tokenizer.
_WEIGHTS = "*.safetensors"
_SAFE = {"use_safetensors": True, "trust_remote_code": False}
"""How Transformers loads a checkpoint: no pickle, and no code that comes with it."""
_SETTINGS = ("config.json", "tokenizer*.json", "vocab.*", "merges.txt", "special_tokens_map.json")
_SETTINGS += ("added_tokens.json", "*.model")
_SPACY = ("config.cfg", "meta.json")
_EXPECTED = (
    "give a folder with config.json, weights in safetensors and a tokenizer, as save_pretrained writes it"
)


def checkpoint_folder(path: str) -> Path:
    """The folder of a checkpoint: `path` itself, or the local copy of the Hub's checkpoint of that name.

    Raises:
        StoreError: there is neither such a folder nor such a checkpoint, or the Hub cannot be reached.
    """
    if Path(path).is_dir():
        return Path(path)
    refuse_misspelled(path)
    # Only checkpoints by name need the Hub's client.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, allow_patterns=[_WEIGHTS, *_SETTINGS]))
    # Whatever the client raises (bad name, no such repository, no network), the user's hint is the same.
    except Exception as error:
        problem = f"is no folder, and was not found on the Hugging Face Hub ({error})"
        raise StoreError(path, problem, "give the folder of a checkpoint, or a name while online") from error


def refuse_misspelled(path: str) -> None:
    """Raise MissingError for what is no name on the Hub, and no folder either, without asking the Hub."""
    place = Path(path)
    if place.is_dir():
        return
    # A name on the Hub is OWNER/NAME, or an old one NAME.
    named = not place.is_absolute() and not path.startswith(".") and len(place.parts) <= 2
    if named and (len(place.parts) == 1 or not place.parent.is_dir()):
        return
    there = (
        sorted(each.name for each in place.parent.iterdir() if each.is_dir()) if place.parent.is_dir() else []
    )
    near = nearest_words(place.name, there)
    hint = f"did you mean {place.parent / near[0]}?" if near else "give the folder of a checkpoint"
    shown = f"; {place.parent} has {', '.join(there[:8])}" if there and not near else ""
    raise MissingError(path, f"is no folder{shown}", hint)


def refuse_unreadable(path: str, *, head: str = "") -> None:
    """Look at a checkpoint without loading it. Of a name on the Hub nothing is looked at.

    Args:
        path: its folder, or its name on the Hub.
        head: how the class of a checkpoint ends that has a trained head, such as `ForTokenClassification`.

    Raises:
        MissingError: there is no such folder, and no such name.
        StoreError: the folder holds no checkpoint that Transformers reads, or one without that head.
    """
    refuse_misspelled(path)
    folder = Path(path)
    if not folder.is_dir():
        return
    settings = _settings(path)
    classes = settings.get("architectures") or ()
    if head and classes and not any(str(name).endswith(head) for name in classes):
        raise StoreError(
            path, f"has no trained head: it is a {classes[0]}, not {head}", "set fine_tune: true"
        )
    _weight_files(folder)
    require_tokenizer(path)


def _settings(path: str) -> PlainObject:
    """The configuration of the checkpoint in the folder `path`."""
    folder = Path(path)
    if not (folder / "config.json").is_file():
        _refuse_spacy(path)
        raise StoreError(path, "has no config.json", _EXPECTED)
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(path, f"its config.json cannot be read ({error})", _EXPECTED) from error
    if not isinstance(settings, dict) or not settings.get("model_type"):
        raise StoreError(
            path, "its config.json names no model_type, as a checkpoint of Transformers does", _EXPECTED
        )
    return settings


def weights_checksum(path: str) -> str:
    """sha256 (hex) over the files that decide a checkpoint's predictions: weights, configuration, tokenizer.

    The same files in another folder have the same checksum. Raises StoreError when there are no weights.
    """
    folder = checkpoint_folder(path)
    return _checksum([*_weight_files(folder), *_files(folder, _SETTINGS)])


def tokenizer_checksum(path: str) -> str | None:
    """sha256 (hex) over the tokenizer and the settings in the folder `path`; None of a checkpoint by name."""
    return _checksum(_files(Path(path), _SETTINGS)) if Path(path).is_dir() else None


def checked_weights(path: str, expected: str | None) -> str:
    """The checkpoint's checksum. Raises StoreError when another was `expected`."""
    return unchanged(path, weights_checksum(path), expected)


def unchanged(path: str, found: str, expected: str | None) -> str:
    """The checksum that was found. Raises StoreError when another was `expected`."""
    if expected not in (None, found):
        raise StoreError(path, "changed since its checksum was taken", "run again from the beginning")
    return found


def reading_limit(model: nn.Module, folder: str | Path) -> int:
    """The most pieces that the checkpoint's model reads at once, special ones included."""
    from torch import nn
    from transformers import AutoTokenizer

    limits = [AutoTokenizer.from_pretrained(str(folder)).model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa and similar models number positions from after the padding index.
            limits.append(
                module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
            )
    known = [limit for limit in limits if limit < _NO_LIMIT]
    return min(known, default=_NO_LIMIT)


def reads_types(model: nn.Module, folder: str | Path) -> bool:
    """Whether the checkpoint's model reads which pieces are of the second text of a pair, as its tokenizer gives it."""
    from transformers import AutoTokenizer

    types = AutoTokenizer.from_pretrained(str(folder))("a", "a").get("token_type_ids", ())
    config: Any = model.config
    return any(types) and getattr(config, "type_vocab_size", 0) > 1


@lru_cache(maxsize=16)
def embedding_dim(folder: str) -> int:
    """Components of the vectors of pieces of the checkpoint in `folder`, by its configuration alone."""
    import torch
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"), quietly():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        return AutoModel.from_config(config).get_input_embeddings().weight.shape[1]


def embedding_matrix(path: str, checksum: str) -> Tensor:
    """The vectors of pieces [V, D] of a checkpoint as it is, in float32.

    Raises:
        StoreError: it cannot be read, or is not the one with this checksum.
    """
    import torch

    checked_weights(path, checksum)
    # What the checkpoint does not hold (for example a pooler) is drawn at random.
    with torch.random.fork_rng(devices=[]):
        model, _ = read_model(path, "AutoModel")
    return model.get_input_embeddings().get_parameter("weight").detach()


def read_model(path: str, auto_class: str, **options: object) -> tuple[PreTrainedModel, list[str]]:
    """A checkpoint as `auto_class` of Transformers reads it with these options, in float32, and what of that class it
    lacks, which is drawn from torch's generator.

    Raises:
        StoreError: there is no such checkpoint, or that class does not read it.
    """
    import torch
    import transformers

    folder = checkpoint_folder(path)
    try:
        with quietly():
            model, report = getattr(transformers, auto_class).from_pretrained(
                str(folder), dtype=torch.float32, output_loading_info=True, **_SAFE, **options
            )
    except (OSError, ValueError) as error:
        hint = f"give a checkpoint that {auto_class} reads"
        raise StoreError(path, f"cannot be loaded ({error})", hint) from error
    return model, sorted(report["missing_keys"])


def untrained(auto_class: str, config: PlainObject) -> PreTrainedModel:
    """The model that `auto_class` of Transformers makes of a configuration as plain data, with weights that are drawn
    from torch's generator, in float32.
    """
    import torch
    import transformers

    with quietly():
        own = transformers.AutoConfig.for_model(**config)
        return getattr(transformers, auto_class).from_config(own, dtype=torch.float32)


@contextmanager
def quietly() -> Iterator[None]:
    """Transformers without its progress bar and its warnings of parts that a checkpoint lacks or has in excess."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()
        logging.set_verbosity(before)


def _refuse_spacy(path: str) -> None:
    if all((Path(path) / name).is_file() for name in _SPACY):
        raise StoreError(path, "is a pipeline of spaCy, no checkpoint of Transformers", _EXPECTED)


def _weight_files(folder: Path) -> list[Path]:
    if files := _files(folder, (_WEIGHTS,)):
        return files
    _refuse_spacy(str(folder))
    hint = (
        f"a checkpoint has {_WEIGHTS} next to its config.json; one with pytorch_model.bin, which is a pickle and may "
        "run code, is loaded by Transformers where you trust it, and stored again by its save_pretrained"
    )
    raise StoreError(str(folder), "holds no weights in safetensors", hint)


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({file for pattern in patterns for file in folder.glob(pattern)})


def _checksum(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name}:{path_sha256(file)}\n".encode())
    return total.hexdigest()
