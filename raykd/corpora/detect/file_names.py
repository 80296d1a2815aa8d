"""File names as evidence: the part, the language, or that the file is no part of a corpus."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


HELD_OUT = "held out"
"""Part of a file called `eval` or `devtest`: dev or test, depending on the names of the other files."""

_SPELLINGS = {
    "train": "train training trn",
    "dev": "dev devel development valid validation val testa trial",
    "test": "test testing testb tst",
    HELD_OUT: "eval evaluation devtest testdev",
    "unlabelled": "unlabelled unlabeled unlab unsup unsupervised mono raw",
}
PART_WORDS: Mapping[str, str] = MappingProxyType(
    {word: part for part, words in _SPELLINGS.items() for word in words.split()}
)
"""Word in a file name → part. CoNLL-2002 and -2003 name dev `testa` and test `testb`."""

_LONGEST_FIRST = "|".join(sorted(PART_WORDS, key=len, reverse=True))
# Latin letters alone make longer words: `训练train` is two.
_LATIN = r"A-Za-z\u00c0-\u024f\u0300-\u036f"
_BEFORE = rf"(?:(?<![{_LATIN}])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Z][A-Z])(?=[a-z]))"
_AFTER = rf"(?:(?![{_LATIN}])|(?<=[a-z])(?=[A-Z]))"
_PART = re.compile(rf"{_BEFORE}(?i:({_LONGEST_FIRST})(?:sets?|data|files?|splits?|parts?|corpus)?){_AFTER}")
"""The name of a part between signs, digits or the capital letters of camel case; never inside another word."""

_GLUED = re.compile("train|valid|dev|test")
"""Names of parts that are looked for inside words, if several files differ by them alone."""

NO_CORPUS = _words(
    """
    license licence readme changelog copying notice citation authors stats sources requirements vocab vocabulary labels
    tagset makefile
    """
)
"""Words in the names of files that come with a corpus and are no part of it."""

ENDINGS_OF_OTHERS = _words(
    """
    md py sh yaml yml toml ini cfg html htm css js xml pdf doc docx rtf log ipynb c h cpp java pl r png jpg jpeg gif svg
    bin pt pth safetensors onnx npy npz pkl pickle db sqlite arrow lock
    """
)
"""Endings of files that are not read as text of a corpus."""

CODES = _words(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo
    es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik is it iu ja jv ka kg ki
    kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no
    nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te
    tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu eng deu ger esp spa ned nld dut fra
    fre ita por rus tur pol hrv srp ces cze slk slv ukr bul ron rum hun fin swe nor dan isl ell gre ara heb fas per hin
    ben tam tel urd zho chi jpn kor vie tha ind msa cat eus baq glg lat lit lav est amh hau ibo kin lug luo pcm swa wol
    yor bam bbj ewe fon mos nya sna tsn twi xho zul arabic basque bengali bulgarian catalan chinese croatian czech
    danish dutch english estonian finnish french german greek hausa hebrew hindi hungarian igbo indonesian italian
    japanese korean latin latvian lithuanian norwegian persian polish portuguese romanian russian serbian slovak slovene
    slovenian spanish swahili swedish tamil telugu thai turkish ukrainian vietnamese yoruba
    """
)
"""ISO 639-1, three-letter codes used by corpora, and English names of languages."""

WORDS = _words(
    """
    am an as be he id is it la my no or se so to all data
    """
)
"""Codes that are words too: in the middle of a name they are words."""

UNKNOWN = "und"
"""ISO 639's code for a language that is not determined."""

_PIECES = re.compile(r"[^\W_]+|[\W_]")


@dataclass(frozen=True)
class FileName:
    """The content of a file name.

    Attributes:
        name: The name.
        parts: Parts in the name: none, one, or several, which is ambiguous.
        language: Language as spelled in the name; None without one.
    """

    name: str
    parts: tuple[str, ...]
    language: str | None


def split_name(name: str) -> list[str]:
    """Split a name into words and the signs between them; the name of a part is a separate word, as in `enTrain`."""
    edges = sorted({0, len(name), *(edge for match in _PART.finditer(name) for edge in match.span())})
    return [piece for start, end in pairwise(edges) for piece in _PIECES.findall(name[start:end])]


def reason_to_skip(name: str) -> str | None:
    """Return the reason for which a file name alone rules out a part of a corpus; None if there is no such reason."""
    words = [piece.lower() for piece in split_name(name)]
    last = words[:-2] if words[-1] == "gz" else words
    if any(part.startswith(".") for part in name.split("/")):
        return "hidden"
    if "{lang}" in name:
        return "its name has {lang}, which stands for a language in patterns"
    if last[-1] in ("zip", "tar", "tgz", "bz2", "xz", "7z", "rar", "zst"):
        return "an archive: unpack it"
    skip_words = NO_CORPUS & set(split_name(name.lower().split("/")[-1]))
    if last[-1] in ENDINGS_OF_OTHERS or (
        skip_words and not (skip_words == {"labels"} and parts_in_name(name))
    ):
        return "by its name no text of a corpus"
    return None


def read_names(names: Sequence[str]) -> list[FileName]:
    """Read part and language from the file names; if no name has a language, take the differing pieces as languages."""
    glued = _glued_parts([name for name in names if not parts_in_name(name)])
    file_names = [
        FileName(name, parts_in_name(name) or glued.get(name, ()), _language(name)) for name in names
    ]
    if any(file.language for file in file_names):
        return file_names
    return [
        replace(file, language=language)
        for file, language in zip(file_names, _differing_pieces(file_names), strict=True)
    ]


def language_pattern(name: str, language: str) -> str:
    """Replace the language in a name, a folder or a word, by `{lang}`."""
    folders = name.split("/")
    if language in folders:
        return "/".join("{lang}" if folder == language else folder for folder in folders)
    return "".join("{lang}" if piece == language else piece for piece in split_name(name))


def parts_in_name(name: str) -> tuple[str, ...]:
    """Return the parts in a file name, or else those in the name of the innermost folder with a part."""
    *folders, file = name.split("/")
    if parts := _parts_in(file):
        if "unlabelled" not in parts:
            return parts
        # Text without labels may be cut like the rest: `train.raw` is no train. But `test.raw` is the text of the test.
        return tuple(part for part in parts if part not in ("unlabelled", "train")) or ("unlabelled",)
    for folder in reversed(folders):
        # `raw` as a folder is where a corpus was unpacked.
        parts = tuple(part for part in _parts_in(folder) if part != "unlabelled")
        if folder.lower() in PART_WORDS and folder.lower() != "raw":
            parts = (PART_WORDS[folder.lower()],)
        if len(parts) == 1:
            return parts
    return ()


def _parts_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(PART_WORDS[match.group(1).lower()] for match in _PART.finditer(text)))


def _glued_parts(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parts of names that differ only by a part inside a word: `engtrain.bio`, `engtest.bio`."""
    families: dict[str, dict[str, str]] = defaultdict(dict)
    for name in names:
        for match in _GLUED.finditer(name.lower()):
            start, end = match.span()
            families[f"{name[:start]}/{name[end:]}"][name] = PART_WORDS[match.group()]
    return {
        name: (part,)
        for family in families.values()
        if len(set(family.values())) > 1
        for name, part in family.items()
    }


def _language(name: str) -> str | None:
    *folders, file = name.split("/")
    for folder in reversed(folders):
        if folder.lower() in CODES:
            return folder
    words = [piece for piece in split_name(file) if len(piece) > 1]
    edges = [word for word in (words[:1] + words[-1:] + words[-2:-1]) if word.lower() in CODES]
    inner = [word for word in words if word.lower() in CODES - WORDS]
    for folder in reversed(folders):
        first = split_name(folder)[0]
        inner += [first] if first.lower() in CODES - WORDS else []
    return next(iter([*edges, *inner]), None)


def _differing_pieces(file_names: Sequence[FileName]) -> list[str | None]:
    """If several files have one part, return the folder or the word in which the names differ."""
    parts = Counter(file.parts for file in file_names if file.parts)
    if not parts or max(parts.values()) == 1:
        return [None] * len(file_names)
    commonest = parts.most_common(1)[0][0]
    for rows in (
        [file.name.split("/")[:-1] for file in file_names],
        [split_name(file.name) for file in file_names],
    ):
        if len({len(row) for row in rows}) > 1:
            continue
        paths = [row for row, file in zip(rows, file_names, strict=True) if file.parts == commonest]
        for place in range(len(rows[0])):
            if len({row[place] for row in paths}) == len(paths) and not all(
                row[place].isdigit() for row in paths
            ):
                return [row[place] for row in rows]
    return [None] * len(file_names)
