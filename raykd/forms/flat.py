"""Flat tags: one for each word, sentence or pair, independent of each other."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from raykd.forms.form import TagForm


@dataclass(frozen=True)
class Flat(TagForm):
    """Tags without structure, such as parts of speech or classes."""

    name: ClassVar[str] = "flat"
    scheme: ClassVar[str] = "flat"
    reads: ClassVar[tuple[str, ...]] = ("flat",)
    file_scheme: ClassVar[Literal["auto", "flat"]] = "flat"
    title: ClassVar[str] = "one tag per word"
    scheme_hint: ClassVar[str] = "set corpus.scheme: flat"


FLAT = Flat()
