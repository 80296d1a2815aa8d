"""Damaged sweep files: the shipped ones with changed bytes, words, keys and structure, checked as by `raykd check`."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from raykd.spec import load
from raykd.sweep.sweep_faults import check_sweep
from tests.fuzz.damage import ANYWHERE

ROOT = Path(__file__).parents[2]
FILES = tuple(sorted((ROOT / "sweeps").glob("*.yaml")))

SCALARS = (
    "1e400", "-1e400", "9" * 400, "9" * 5000, "0x" + "f" * 300, "1e-400", ".inf", ".nan", "-0", "1_000", "''", "~",
    "null", "[]", "{}", "[[]]", "{choice: []}", "{choice: [1, 1]}", "{choice: 3}", "{int: [0, 2147483647]}",
    "{int: [0, 9007199254740992]}", "{int: [-9007199254740992, 9007199254740992]}", "{int: [5, 1]}", "{int: [1, 2, 3]}",
    "{float: [0, 1e308]}", "{float: [-1.7e308, 1.7e308], step: 1e-300}", "{float: [0, 1], step: 1e-12}",
    "{float: [0.0, 1.0], step: 0}", "{float: [1e-320, 1], log: true}", "{choice: [{int: [1, 10]}, {choice: [a, b]}]}",
    "{int: [1, 10], float: [0, 1]}", "!!python/object/apply:os.system [ls]", "!!binary aGVsbG8=", "!<tag> x", "&a [*a]",
    "*missing", "'[bold]x[/nope]'", "\"\\uD800\"", "\"\\UFFFFFFFF\"", "\"\\0\"", "x" * 100_000, "? a", "2026-11-22",
    "../../../etc/passwd", "|\n  text\n", ">-\n  text\n", "true", "no", "0o777", "0o9", "+.5",
    "é" * 50, "\u202e", "\ufeff",
)  # fmt: skip


def words(random: Random, data: bytes) -> bytes:
    """A different value, of those that have broken parsers."""
    text = data.decode()
    places = list(re.finditer(r": ([^\s{}\[\],#][^\n{}\[\],#]*)", text))
    if not places:
        return data
    place = random.choice(places)
    return (text[: place.start(1)] + random.choice(SCALARS) + text[place.end(1) :]).encode()


def keys(random: Random, data: bytes) -> bytes:
    """A different word as a key: misspelt, repeated, enormous."""
    text = data.decode()
    place = random.choice(list(re.finditer(r"(?m)(^|[{,] ?)(\s*)([a-z_0-9]+):", text)))
    word = place.group(3)
    new_key = random.choice(
        (word[::-1], word * 2, "k" * 5000, "kind", "choice", "0", "~", "''", word[:-1], "<<")
    )
    return (text[: place.start(3)] + new_key + text[place.end(3) :]).encode()


def deep(random: Random, data: bytes) -> bytes:
    """Something is nested very deep."""
    depth = random.choice((60, 1_000, 20_000))
    nested = random.choice(
        ("[" * depth + "]" * depth, "{a: " * depth + "1" + "}" * depth, "- " * depth + "1")
    )
    return data + f"\nx: {nested}\n".encode()


def bomb(random: Random, data: bytes) -> bytes:
    """Aliases of aliases."""
    levels = random.choice((8, 12, 30))
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    lines += [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, levels)]
    return data + b"\n" + "\n".join(lines).encode() + b"\n"


def many(random: Random, data: bytes) -> bytes:
    """Thousands of keys, options, languages or faults."""
    count = random.choice((900, 5_000, 20_000))
    more = random.choice(
        (
            "\n".join(f"unknown_{i}: {i}" for i in range(count)),
            f"extra: {{choice: [{', '.join(map(str, range(count)))}]}}",
            "corpus: {source: builtin, languages: [" + ", ".join(f"l{i}" for i in range(count)) + "]}",
            "search: {" + ", ".join(f"trial{i}: 1" for i in range(count)) + "}",
        )
    )
    return data + b"\n" + more.encode() + b"\n"


def comments(random: Random, data: bytes) -> bytes:
    """A harmless change: comments, empty lines, spaces at the ends of lines."""
    lines = data.decode().split("\n")
    block = None
    for place in sorted(random.sample(range(len(lines)), min(4, len(lines))), reverse=True):
        if block is None and not lines[place].rstrip().endswith(("|", ">-")):
            lines.insert(place, random.choice(("# [bold]: {x", "", "    # a comment", "#")))
    return "\n".join(lines).encode()


HARMLESS = (comments,)
OWN = (words, words, words, keys, keys, deep, bomb, many)


def cases(seed: int) -> Iterator[tuple[str, Callable[[], None], bool]]:
    """Damaged files without end."""
    random = Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="raykd-fuzz-"))
    damages = [
        *ANYWHERE.items(),
        *((damage_function.__name__, damage_function) for damage_function in (*OWN, *HARMLESS)),
    ]
    while True:
        file = random.choice(FILES)
        name, damage = random.choice(damages)
        changed = damage(random, file.read_bytes())
        if name not in [damage_function.__name__ for damage_function in HARMLESS] and random.random() < 0.3:
            changed = random.choice(list(ANYWHERE.values()))(random, changed or b"a")
        path = folder / file.name
        path.write_bytes(changed)
        yield name, partial(_check, path), name in [damage_function.__name__ for damage_function in HARMLESS]


def _check(path: Path) -> None:
    check_sweep(load(path))
