"""Ways to damage a file: each takes a random generator and the bytes, and gives other bytes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Damage = Callable[[Random, bytes], bytes]


def flipped(random: Random, data: bytes) -> bytes:
    """Flip one to eight bits."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 8)):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def cut(random: Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: random.randrange(len(data))]


def hole(random: Random, data: bytes) -> bytes:
    """A part is missing."""
    first = random.randrange(len(data))
    return data[:first] + data[first + random.randint(1, 200) :]


def repeated(random: Random, data: bytes) -> bytes:
    """A part is there several times."""
    first = random.randrange(len(data))
    part = data[first : first + random.randint(1, 400)]
    return data[:first] + part * random.choice((2, 3, 50)) + data[first:]


def shuffled_lines(random: Random, data: bytes) -> bytes:
    """Some lines have changed places."""
    lines = data.split(b"\n")
    for _ in range(random.randint(1, 4)):
        first, second = random.randrange(len(lines)), random.randrange(len(lines))
        lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def zeros(random: Random, data: bytes) -> bytes:
    """A part is zeros, as after a power cut."""
    first = random.randrange(len(data))
    last = min(len(data), first + random.randint(1, 300))
    return data[:first] + bytes(last - first) + data[last:]


def line_ends(random: Random, data: bytes) -> bytes:
    """Change the line ends: CR alone, CR LF, or both mixed."""
    end = random.choice((b"\r", b"\r\n", b"\n\r", b"\x0b", "\u2028".encode()))
    return data.replace(b"\n", end)


ANYWHERE: dict[str, Damage] = {
    each.__name__: each for each in (flipped, cut, hole, repeated, shuffled_lines, zeros, line_ends)
}
