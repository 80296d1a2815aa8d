"""Pretrained checkpoints: their files, their checksums, and how many pieces they read at once."""

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
from raykd.forms.tag_schemes import marks_both_ends
from raykd.identity import PlainObject
from raykd.layers.transition_biases import BIASES_FILE
from raykd.spec.messages import nearest_words
from raykd.storage.digests import path_sha256

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PreTrainedModel

# Transformers writes this where a tokenizer states no limit.
_NO_LIMIT = 10**6

_SAFE = {"use_safetensors": True, "trust_remote_code": False}
"""Options of Transformers for loading a checkpoint: no pickle, and no code from the checkpoint."""
# The files that decide a checkpoint's predictions: weights, configuration (label names too) and tokenizer.
_WEIGHTS = "*.safetensors"
_CONFIG_AND_TOKENIZER = ("config.json", "tokenizer*.json", "vocab.*", "merges.txt", "special_tokens_map.json")
_CONFIG_AND_TOKENIZER += ("added_tokens.json", "*.model", BIASES_FILE)
_SPACY = ("config.cfg", "meta.json")
_EXPECTED = (
    "give a folder with config.json, weights in safetensors and a tokenizer, as save_pretrained writes it"
)


def checkpoint_folder(path: str) -> Path:
    """Return the folder of a checkpoint, downloaded from the Hub where `path` is a name there.

    Args:
        path: folder of the checkpoint, or its name on the Hub.

    Raises:
        StoreError: there is neither such a folder nor such a checkpoint, or the Hub cannot be reached.
    """
    if Path(path).is_dir():
        return Path(path)
    refuse_misspelled(path)
    # Only checkpoints by name need the Hub's client.
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(path, allow_patterns=[_WEIGHTS, *_CONFIG_AND_TOKENIZER]))
    # The hint is the same for every error of the client: bad name, no such repository, no network.
    except Exception as error:
        problem = f"is not a folder, and was not found on the Hugging Face Hub ({error})"
        raise StoreError(path, problem, "give the folder of a checkpoint, or a name while online") from error


def refuse_misspelled(path: str) -> None:
    """Refuse a path that is neither a folder nor a possible name on the Hub, without a request to the Hub.

    Args:
        path: folder of a checkpoint, or its name on the Hub.

    Raises:
        MissingError: it is neither.
    """
    folder = Path(path)
    if folder.is_dir():
        return
    # A name on the Hub is OWNER/NAME, or an old one NAME.
    is_hub_name = not folder.is_absolute() and not path.startswith(".") and len(folder.parts) <= 2
    if is_hub_name and (len(folder.parts) == 1 or not folder.parent.is_dir()):
        return
    siblings = (
        sorted(child.name for child in folder.parent.iterdir() if child.is_dir())
        if folder.parent.is_dir()
        else []
    )
    suggestions = nearest_words(folder.name, siblings)
    hint = (
        f"did you mean {folder.parent / suggestions[0]}?"
        if suggestions
        else "give the folder of a checkpoint"
    )
    listing = f"; {folder.parent} has {', '.join(siblings[:8])}" if siblings and not suggestions else ""
    raise MissingError(path, f"is not a folder{listing}", hint)


def refuse_unreadable(path: str, *, head: str = "") -> None:
    """Check the folder of a checkpoint without loading the model; a name on the Hub is not looked up.

    Args:
        path: folder of the checkpoint, or its name on the Hub.
        head: end of the class name of a checkpoint with the head that is needed, such as `ForTokenClassification`.

    Raises:
        MissingError: there is no such folder, and no such name.
        StoreError: the folder holds no checkpoint that Transformers reads, or one without that head.
    """
    refuse_misspelled(path)
    folder = Path(path)
    if not folder.is_dir():
        return
    classes = _config(path).get("architectures") or ()
    if head and classes and not any(str(name).endswith(head) for name in classes):
        raise StoreError(
            path, f"has no trained head: its class is {classes[0]}, not {head}", "set fine_tune: true"
        )
    _weight_files(folder)
    require_tokenizer(path)


def checkpoint_labels(path: str) -> list[str]:
    """Return the names of a checkpoint's labels in their order; empty if its configuration names none.

    Args:
        path: folder of the checkpoint, or its name on the Hub.

    Raises:
        StoreError: it has no configuration that can be read.
    """
    names = _config(str(checkpoint_folder(path))).get("id2label") or {}
    return [str(names[number]) for number in sorted(names, key=int)]


def labels_every_piece(path: str) -> tuple[bool, bool]:
    """Return how a checkpoint labels words of several pieces, by its configuration alone.

    A checkpoint that raykd wrote says so itself (`labelled_pieces`). Else labels that mark both ends of a span (BIOES)
    are taken for those of pieces, others for those of first pieces.

    Args:
        path: folder of the checkpoint, or its name on the Hub.

    Returns:
        True if it labels every piece; True if its labels mark both ends of a span.

    Raises:
        StoreError: it has no configuration that can be read.
    """
    config = _config(str(checkpoint_folder(path)))
    marked = marks_both_ends(checkpoint_labels(path))
    stated = config.get("labelled_pieces")
    return marked if stated is None else stated == "every", marked


def _config(path: str) -> PlainObject:
    folder = Path(path)
    if not (folder / "config.json").is_file():
        _refuse_spacy(path)
        raise StoreError(path, "has no config.json", _EXPECTED)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StoreError(path, f"its config.json cannot be read ({error})", _EXPECTED) from error
    if not isinstance(config, dict) or not config.get("model_type"):
        raise StoreError(
            path, "its config.json names no model_type, as a checkpoint of Transformers does", _EXPECTED
        )
    return config


def weights_checksum(path: str) -> str:
    """Return the sha256 (hex) of the files that decide a checkpoint's predictions: weights, configuration, tokenizer.

    The same files in another folder have the same checksum.

    Args:
        path: folder of the checkpoint, or its name on the Hub.

    Raises:
        StoreError: it has no weights.
    """
    folder = checkpoint_folder(path)
    return _checksum([*_weight_files(folder), *_files(folder, _CONFIG_AND_TOKENIZER)])


def tokenizer_checksum(path: str) -> str | None:
    """Return the sha256 (hex) of a checkpoint's tokenizer and configuration; None for a name on the Hub.

    Args:
        path: folder of the checkpoint, or its name on the Hub.
    """
    return _checksum(_files(Path(path), _CONFIG_AND_TOKENIZER)) if Path(path).is_dir() else None


def verified_weights_checksum(path: str, expected: str | None) -> str:
    """Return the checkpoint's checksum, compared with the expected one.

    Args:
        path: folder of the checkpoint, or its name on the Hub.
        expected: checksum that it had before; None accepts any.

    Raises:
        StoreError: the checksum is not the expected one.
    """
    return require_checksum(path, weights_checksum(path), expected)


def require_checksum(path: str, checksum: str, expected: str | None) -> str:
    """Return the checksum of a file, compared with the expected one.

    Args:
        path: name of the file in the error.
        checksum: its checksum now.
        expected: checksum that it had before; None accepts any.

    Raises:
        StoreError: the checksum is not the expected one.
    """
    if expected not in (None, checksum):
        raise StoreError(path, "changed since its checksum was taken", "run again from the beginning")
    return checksum


def reading_limit(model: nn.Module, folder: str | Path) -> int:
    """Return the most pieces read at once by a checkpoint's model, special ones included.

    The limit is that of the tokenizer and of the position embeddings, or, without both, that of the configuration.

    Args:
        model: the model of the checkpoint.
        folder: its folder.
    """
    from torch import nn
    from transformers import AutoTokenizer

    limits = [AutoTokenizer.from_pretrained(str(folder)).model_max_length]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            # RoBERTa and similar models number positions from after the padding index.
            limits.append(
                module.num_embeddings - (0 if module.padding_idx is None else module.padding_idx + 1)
            )
    finite_limits = [limit for limit in limits if limit < _NO_LIMIT]
    # DeBERTa-v3 has relative positions, and its tokenizer states no limit: it was trained on 512 pieces.
    config: Any = model.config
    return min(finite_limits, default=getattr(config, "max_position_embeddings", None) or _NO_LIMIT)


def reads_token_types(model: nn.Module, folder: str | Path) -> bool:
    """Return True if the tokenizer marks the pieces of the second text of a pair, and the model reads the marks.

    Args:
        model: the model of the checkpoint.
        folder: its folder.
    """
    from transformers import AutoTokenizer

    types = AutoTokenizer.from_pretrained(str(folder))("a", "a").get("token_type_ids", ())
    config: Any = model.config
    return any(types) and getattr(config, "type_vocab_size", 0) > 1


@lru_cache(maxsize=16)
def embedding_dim(folder: str) -> int:
    """Return the number of components of the piece vectors of a checkpoint, from its configuration alone.

    Args:
        folder: folder of the checkpoint.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    with torch.device("meta"), quiet_transformers():
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        return AutoModel.from_config(config).get_input_embeddings().weight.shape[1]


def embedding_matrix(path: str, checksum: str) -> Tensor:
    """Return the piece vectors [V, D] of a checkpoint as published, in float32.

    Args:
        path: folder of the checkpoint, or its name on the Hub.
        checksum: its checksum.

    Raises:
        StoreError: it cannot be read, or has another checksum.
    """
    import torch

    verified_weights_checksum(path, checksum)
    # Parameters that the checkpoint does not hold (for example a pooler's) are drawn at random.
    with torch.random.fork_rng(devices=[]):
        model, _ = read_model(path, "AutoModel")
    return model.get_input_embeddings().get_parameter("weight").detach()


def read_model(path: str, auto_class: str, **options: object) -> tuple[PreTrainedModel, list[str]]:
    """Load a checkpoint with a class of Transformers, in float32.

    Args:
        path: folder of the checkpoint, or its name on the Hub.
        auto_class: name of the class, such as `AutoModel`.
        **options: options of its `from_pretrained`.

    Returns:
        The model, and the names of parameters that the checkpoint lacks; these are drawn from torch's generator.

    Raises:
        StoreError: there is no such checkpoint, or the class cannot read it.
    """
    import torch
    import transformers

    folder = checkpoint_folder(path)
    try:
        with quiet_transformers():
            model, report = getattr(transformers, auto_class).from_pretrained(
                str(folder), dtype=torch.float32, output_loading_info=True, **_SAFE, **options
            )
    except (OSError, ValueError) as error:
        hint = f"give a checkpoint that {auto_class} reads"
        raise StoreError(path, f"cannot be loaded ({error})", hint) from error
    return model, sorted(report["missing_keys"])


def untrained_model(auto_class: str, config: PlainObject) -> PreTrainedModel:
    """Build a Transformers model with weights drawn from torch's generator, in float32.

    Args:
        auto_class: name of the class, such as `AutoModel`.
        config: the model's configuration as plain data.
    """
    import torch
    import transformers

    with quiet_transformers():
        model_config = transformers.AutoConfig.for_model(**config)
        return getattr(transformers, auto_class).from_config(model_config, dtype=torch.float32)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the progress bar and the warnings of Transformers about missing and superfluous parameters."""
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
        raise StoreError(path, "is a spaCy pipeline, not a checkpoint of Transformers", _EXPECTED)


def _weight_files(folder: Path) -> list[Path]:
    if files := _files(folder, (_WEIGHTS,)):
        return files
    _refuse_spacy(str(folder))
    hint = (
        f"a checkpoint has {_WEIGHTS} next to its config.json; if it has pytorch_model.bin, a pickle that may run "
        "code, and you trust it, load it with Transformers and store it again with save_pretrained"
    )
    raise StoreError(str(folder), "holds no weights in safetensors", hint)


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted({file for pattern in patterns for file in folder.glob(pattern)})


def _checksum(files: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name}:{path_sha256(file)}\n".encode())
    return total.hexdigest()
