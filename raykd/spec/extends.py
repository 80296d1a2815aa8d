"""Reading a sweep file from disk, together with the file that it extends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from raykd.errors import Fault, SpecError
from raykd.spec.layers import Layer, lay_over
from raykd.spec.messages import nearest_words
from raykd.spec.places import Place, dotted
from raykd.spec.yaml12 import BadYamlError, parse

EXTENDS = "extends"


def read_with_bases(file: str, above: tuple[str, ...] = ()) -> tuple[Layer, tuple[Fault, ...]]:
    """Read `file` with the file named by its `extends`, and so on: settings of the extending file win.

    Args:
        file: Path of the sweep file.
        above: Files that extend this one, starting with the one that the user named.

    Returns:
        The settings, and the faults that do not prevent reading: keys written twice.

    Raises:
        SpecError: A file is missing or unreadable, is not YAML or not a mapping, or extends itself.
    """
    layer, faults = _read_one(file)
    if EXTENDS not in layer.tree:
        return layer, faults
    base, base_faults = read_with_bases(_base_file(layer, (*above, file)), (*above, file))
    settings = {key: value for key, value in layer.tree.items() if key != EXTENDS}
    return lay_over(base, Layer(settings, layer.places)), (*faults, *base_faults)


def _read_one(file: str) -> tuple[Layer, tuple[Fault, ...]]:
    """Read the settings of one file, without those of the file that it extends."""
    try:
        parsed = parse(_text(Path(file)))
    except (BadYamlError, OSError, UnicodeDecodeError) as error:
        raise SpecError((_unreadable(file, error),)) from error
    if not isinstance(parsed.value, dict):
        raise SpecError((_not_a_mapping(file, parsed.value),))
    layer = Layer(parsed.value, {path: Place(file, line) for path, line in parsed.lines.items()})
    faults = (Fault(file, line, dotted(path), message) for path, line, message in parsed.faults)
    return layer, tuple(faults)


def _base_file(layer: Layer, chain: tuple[str, ...]) -> str:
    """Return the path of the file that `layer` extends. `chain` holds the files read so far, that of `layer` last."""
    written = layer.tree[EXTENDS]
    if not isinstance(written, str) or not written:
        _refuse(layer, f"must be the path of one sweep file, got {written!r}; write `{EXTENDS}: base.yaml`")
    base = _plain_path(Path(layer.file).parent / written)
    if any(os.path.realpath(file) == os.path.realpath(base) for file in chain):
        steps = " extends ".join([*chain, base])
        _refuse(layer, f"the files extend each other in a circle: {steps}; remove one `{EXTENDS}`")
    if os.path.isdir(base):
        _refuse(layer, f"{base} is a folder; name one YAML file in it")
    if not os.path.exists(base):
        near = nearest_words(written, _relative_files(layer.file, base))
        hint = f"did you mean {near[0]}?" if near else "give its path relative to this file"
        _refuse(layer, f"no such file {base}; {hint}")
    return base


def _relative_files(file: str, base: str) -> Iterator[str]:
    """Sweep files similar to `base`, as paths relative to `file`."""
    folder_of_file = Path(file).parent
    for folder in (
        Path(base).parent,
        folder_of_file,
        *(child for child in folder_of_file.parent.iterdir() if child.is_dir()),
    ):
        for candidate in folder.glob("*.y*ml"):
            if os.path.realpath(candidate) != os.path.realpath(file):
                yield os.path.relpath(candidate, folder_of_file)


def _plain_path(path: Path) -> str:
    """Shorten `a/../b` to `b`, unless `a` is a link to another folder."""
    short = os.path.normpath(path)
    return short if os.path.realpath(short) == os.path.realpath(path) else str(path)


def _refuse(layer: Layer, message: str) -> NoReturn:
    raise SpecError((layer.fault((EXTENDS,), message),))


def _text(path: Path) -> str:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder")
    return path.read_bytes().decode("utf-8-sig")


def _unreadable(name: str, error: BadYamlError | OSError | UnicodeDecodeError) -> Fault:
    if isinstance(error, BadYamlError):
        return Fault(name, error.line, "", error.message)
    if isinstance(error, FileNotFoundError):
        path = Path(name)
        names = [str(file) for file in (*path.parent.glob("*.y*ml"), *Path("sweeps").rglob("*.y*ml"))]
        near = " or ".join(nearest_words(path, names, limit=2))
        hint = f"did you mean {near}?" if near else "give the path of a YAML sweep file"
        return Fault(name, None, "", f"no such file; {hint}")
    if isinstance(error, IsADirectoryError):
        return Fault(name, None, "", "a folder, not a sweep file; name one YAML file in it")
    if isinstance(error, UnicodeDecodeError):
        return Fault(name, None, "", f"not UTF-8 text (byte {error.start}); save the file as UTF-8")
    return Fault(name, None, "", f"cannot be read: {error.strerror or error}; make it readable")


def _not_a_mapping(name: str, value: Any) -> Fault:
    if value is None:
        return Fault(name, None, "", "the file is empty; a sweep file starts with `name:` and `corpus:`")
    received = "a list" if isinstance(value, list) else f"{value!r}"
    return Fault(name, 1, "", f"a sweep file is a mapping of settings (`name: …`), got {received}")
