"""Checkpoints that are given: where their files lie, and their identity."""

from __future__ import annotations

import hashlib
from pathlib import Path

from raykd.errors import StoreError

# What decides a checkpoint's predictions: weights, configuration (label names too) and tokenizer.
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SETTINGS = ("config.json", "tokenizer*.json", "vocab.*", "merges.txt", "special_tokens_map.json")
_SETTINGS += ("added_tokens.json", "*.model")


def checkpoint_folder(path: str) -> Path:
    """The folder of a checkpoint: `path` itself, or the local copy of the Hub's checkpoint of that name.

    Raises:
        StoreError: there is neither such a folder nor such a checkpoint, or the Hub cannot be reached.
    """
    if Path(path).is_dir():
        return Path(path)
    # Only checkpoints by name need the Hub's client.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, allow_patterns=[*_WEIGHTS, *_SETTINGS]))
    # Whatever the client raises (bad name, no such repository, no network), the user's mend is the same.
    except Exception as error:
        problem = f"is no folder, and was not found on the Hugging Face Hub ({error})"
        raise StoreError(path, problem, "give the folder of a checkpoint, or a name while online") from error


def weights_checksum(path: str) -> str:
    """sha256 (hex) over the files that decide a checkpoint's predictions: weights, configuration, tokenizer.

    The same files in another folder have the same checksum. Raises StoreError when there are no weights.
    """
    folder = checkpoint_folder(path)
    total = hashlib.sha256()
    for file in [*_weight_files(folder), *_files(folder, _SETTINGS)]:
        with file.open("rb") as content:
            total.update(f"{file.name}:{hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return total.hexdigest()


def _weight_files(folder: Path) -> list[Path]:
    # Where a checkpoint comes in both formats, Transformers reads safetensors.
    for pattern in _WEIGHTS:
        if files := _files(folder, (pattern,)):
            return files
    mend = f"a checkpoint has {' or '.join(_WEIGHTS)} beside its config.json"
    raise StoreError(str(folder), "holds no weights", mend)


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({file for pattern in patterns for file in folder.glob(pattern)})
