"""The settings of corpus sources: the sentences to take, and the places of files.

A source is its configuration (frozen) and a function `read(config) -> Stream` beside it. Reading gives the sentences
as the file has them, one after the other. Selection, split and conversion are the same for all sources (`corpus.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import Discriminator, Field, Tag, model_validator

from raykd.corpora.faults import OnError
from raykd.corpora.sentence import Faulty, ReadingNote, Sentence, Unit
from raykd.forms import FLAT, PIECES, SPANS, TREE, LabelForm
from raykd.forms.tag_schemes import FileScheme, ReadScheme
from raykd.spec import Frozen
from raykd.storage.layout import PARTS

Stream = Iterator[tuple[str, Sentence | Faulty | ReadingNote]]
"""Pairs of a part and a sentence in reading order, or a fault or note in place of a sentence."""
Value = TypeVar("Value")
Weight = Annotated[int, Field(ge=1)]
SentenceCount = Annotated[int, Field(ge=1)]
Cap = SentenceCount | dict[str, SentenceCount]
"""Maximum number of sentences: one for all languages, or a mapping from languages with `default` for the others."""
Name = Annotated[str, Field(min_length=1)]
Pattern = Name | dict[str, Name]
"""A file pattern or split name: one for all languages, or a mapping from languages with `default` for the others."""
TextForm = Literal["same", "columns", "sentences", "documents"]
Role = Literal["labelled", "unlabelled", "zero-shot"]
"""A language's role in training: sentences with tags, sentences without, or none."""

REST = "rest"
DEFAULT = "default"
READ_BY_ROLE: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    # Selecting on a target language's dev would not be zero-shot, so targets have no dev but by zero_shot_dev.
    {"labelled": PARTS, "unlabelled": ("train", "unlabelled", "test"), "zero-shot": ("test",)}
)


class Split(Frozen):
    """Shares of the capped train sentences that become train, dev and test (ACL 2021 draws 3 : 1 : 1)."""

    train: Weight = 3
    dev: Weight = 1
    test: Annotated[int, Field(ge=0)] = 1
    """0: test is not drawn, but read from `test`."""


class SourceConfig(Frozen):
    """The sentences to take from a source."""

    forms: ClassVar[tuple[LabelForm, ...]] = (FLAT, SPANS, TREE, PIECES)
    """Label forms that the labels may have, the usual one first."""
    unit: ClassVar[Unit] = "word"
    """Unit that has one tag in this source."""
    other_mappings: ClassVar[tuple[str, ...]] = ()
    """Settings that may be a mapping, but not from languages."""
    languages: Annotated[tuple[Name, ...], Field(min_length=1)]
    unlabelled_languages: tuple[Name, ...] = ()
    """Languages without labels: their training sentences become unlabelled text (limited by `unlabelled_cap`). They
    have a test part but no dev."""
    zero_shot_languages: tuple[Name, ...] = ()
    """Languages of which only the test part is read."""
    zero_shot_dev: bool = False
    """Also read dev of the zero-shot languages. It is scored separately (`dev_{score}_target`) and selects nothing,
    unless search.objectives or constraints name it: without labels in these languages, you could not select on it
    either."""
    outside_mean: tuple[Name, ...] = ()
    """Languages without labels that are scored and shown, but left out of the mean."""
    scheme: FileScheme | dict[str, FileScheme] = "auto"
    """Scheme in which the files write spans, for all languages or by language; `auto` finds it for each language from
    the tags."""
    cap: Cap | None = None
    """Maximum number of labelled training sentences per language, drawn at random: 5000, or {en: 12000, default:
    5000}. With `split` it limits the sentences of all three parts together."""
    cap_per_class: Cap | None = None
    """Maximum number of labelled training sentences per class and language, where a sentence has one class: 500, or a
    mapping like `cap`. It limits train only, after `cap` and `split`."""
    unlabelled_cap: Cap | None = None
    """Maximum number of sentences without labels per language, drawn at random: a number, or a mapping like `cap`."""
    dev_cap: Cap | None = None
    """Maximum number of dev sentences per language, in the same way; not where `split` draws dev."""
    test_cap: Cap | None = None
    """Maximum number of test sentences per language, in the same way; not where `split` draws test."""
    split: Split | None = None
    """Draw dev and test from the training sentences instead of reading them."""
    on_error: OnError = "repair"
    """Treatment of faults. `repair`: an invalid sequence of tags (I- without B-) is read as conlleval reads it; the
    first of all other faults are reported together. `skip`: sentences with other faults (too few columns, no word or
    tag, a tag of another scheme, bytes that are not text) are left out too, in all parts. `stop`: tags are not
    repaired either."""
    most_skipped: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Maximum share of the sentences of a part and language that `on_error: skip` may leave out; beyond it the corpus
    is refused."""
    nested: Literal["refuse", "outermost"] = "refuse"
    """Treatment of overlapping spans (in tags: `B-ORG|B-LOC`). `refuse`: the corpus is refused. `outermost`: the
    longest span is read; those that overlap it are left out and counted."""
    duplicates: Literal["drop", "keep"] = "drop"
    """Drop or keep a training sentence whose text was read before in its language."""
    overlaps: Literal["drop", "keep"] = "drop"
    """Drop or keep a training sentence whose text is also in dev or test. With `keep`, and `duplicates: keep`,
    published splits stay whole; scores of sentences that were trained on are too high."""
    sampling_alpha: Annotated[float, Field(ge=0)] = 1.0
    """Exponent of smoothed language sampling: p ∝ n^alpha; 1 takes the corpus as it is."""
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _settings_agree(self) -> SourceConfig:
        twice = sorted({name for name in self.languages if self.languages.count(name) > 1})
        if twice:
            raise ValueError(f"languages names {', '.join(twice)} twice")
        drawn = [part for part in ("dev", "test") if self.draws(part)]
        if capped := [f"{part}_cap" for part in drawn if getattr(self, f"{part}_cap") is not None]:
            raise ValueError(
                f"split decides how large {' and '.join(drawn)} are: remove {' and '.join(capped)}"
            )
        if self.cap_per_class is not None and self.unit == "word":
            raise ValueError(
                "cap_per_class counts sentences by class, but these have one tag per word: set cap"
            )
        for field, value in self:
            if field not in self.other_mappings:
                refuse_unknown_languages(field, value, self.languages)
        return self

    @model_validator(mode="after")
    def _roles_agree(self) -> SourceConfig:
        targets = (*self.unlabelled_languages, *self.zero_shot_languages)
        unknown = sorted(set(targets) - set(self.languages))
        if unknown:
            problem = f"name {', '.join(unknown)}, not among languages ({', '.join(self.languages)})"
            raise ValueError(f"unlabelled_languages and zero_shot_languages {problem}")
        twice = sorted({name for name in targets if targets.count(name) > 1})
        if twice:
            raise ValueError(f"unlabelled_languages and zero_shot_languages name {', '.join(twice)} twice")
        if stray := [name for name in self.outside_mean if name not in targets]:
            problem = f"outside_mean names {', '.join(stray)}, which training labels"
            raise ValueError(f"{problem}: name some of unlabelled_languages and zero_shot_languages")
        if self.outside_mean and set(self.outside_mean) == set(targets):
            raise ValueError("outside_mean names all languages without labels: none is left for their mean")
        if len(targets) == len(self.languages):
            raise ValueError("no language with labels is left to learn from")
        if self.zero_shot_dev and not self.zero_shot_languages:
            raise ValueError("zero_shot_dev is dev of zero_shot_languages: name some, or omit it")
        return self

    @property
    def pairs(self) -> bool:
        """True if sentences are pairs of texts."""
        return False

    @property
    def leaves_out_trees(self) -> bool:
        """True if the settings do not read the trees of a treebank."""
        return False

    @property
    def rules_checksum(self) -> str | None:
        """Checksum of the rules of a generated corpus; None for a corpus that is read."""
        return None

    @property
    def pos_origin(self) -> str:
        """Origin of a treebank's parts of speech in words."""
        return "gold"

    def scheme_of(self, language: str) -> ReadScheme:
        """Return the tag scheme of a language's sentences as read from the source.

        Args:
            language: Language of the corpus.
        """
        return for_language(self.scheme, language) or "auto"

    def role(self, language: str) -> Role:
        """Return the role of a language in training."""
        if language in self.zero_shot_languages:
            return "zero-shot"
        return "unlabelled" if language in self.unlabelled_languages else "labelled"

    def draws(self, part: str) -> bool:
        """Return True if `part`, dev or test, is drawn from the training sentences."""
        return self.split is not None and (part == "dev" or self.split.test > 0)

    @property
    def annotator_labels(self) -> tuple[str, ...]:
        """Labels that an annotator gives to sentences without gold labels; empty where there are gold labels."""
        return ()

    @property
    def has_text(self) -> bool:
        """True if the settings ask for text without tags."""
        return bool(getattr(self, "unlabelled", None) or self.unlabelled_languages)

    def takes_rest(self, language: str) -> bool:
        """Return True if training sentences of `language` beyond the caps become unlabelled text."""
        return for_language(getattr(self, "unlabelled", None), language) == REST

    def reads_tags(self, part: str, language: str) -> bool:
        """Return True if the tags of a part and language are read.

        Args:
            part: Name of the part.
            language: Language of the corpus.
        """
        if part == "train" and self.split is None:
            return self.role(language) == "labelled"
        return part != "unlabelled"


class PartsConfig(SourceConfig):
    """A source with one name per part: files, or splits of a data set."""

    train: Pattern
    """A pattern with `{lang}` for the language, or a mapping from languages, with `default` for the others."""
    dev: Pattern | None = None
    test: Pattern | None = None
    unlabelled: Pattern | None = None
    """Text without tags; `rest` takes the training sentences beyond `cap` and `cap_per_class`."""

    @model_validator(mode="after")
    def _parts_are_complete(self) -> PartsConfig:
        present = [part for part in ("dev", "test") if getattr(self, part) is not None]
        drawn = [part for part in ("dev", "test") if self.draws(part)]
        if written := [part for part in present if part in self.model_fields_set and part in drawn]:
            raise ValueError(f"split draws {' and '.join(drawn)} from train: remove {' and '.join(written)}")
        if not {*present, *drawn} >= {"dev", "test"}:
            hint = "name test" if drawn else "name both, or draw them with split: {train: 3, dev: 1, test: 1}"
            raise ValueError(f"dev and test are needed: {hint}")
        for language in self.languages:
            self._refuse_gaps(language)
        return self

    def _refuse_gaps(self, language: str) -> None:
        """ValueError if `language` lacks a part needed by its role."""
        role, names = self.role(language), self.named_parts(language)
        capped = self.cap is not None or self.cap_per_class is not None
        if role == "labelled" and self.takes_rest(language) and not capped:
            caps = (
                "cap leaves: set cap" if self.unit == "word" else "the caps leave: set cap or cap_per_class"
            )
            raise ValueError(f"unlabelled: rest takes what {caps}")
        text = "train" in names or "unlabelled" in names
        scored = ("dev", "test") if self.zero_shot_dev else ("test",)
        needed = {"labelled": ("train", "dev", "test"), "unlabelled": ("test",), "zero-shot": scored}[role]
        if self.split is not None:
            needed = ("train",) if self.draws("test") else ("train", "test")
        elif role == "unlabelled" and not text:
            needed = ("train", "test")
        missing = [part for part in needed if part not in names]
        if missing:
            problem = (
                f"{' and '.join(missing)} {'has' if len(missing) == 1 else 'have'} nothing for {language}"
            )
            raise ValueError(f"{problem} ({role}): name it there, or add default")

    def named_parts(self, language: str) -> dict[str, str]:
        """Return the places of the parts to read of a language, with `{lang}` filled in.

        Args:
            language: Language of the corpus.
        """
        if self.split is not None:
            parts = ("train",) if self.role(language) == "zero-shot" else ("train", "unlabelled")
            parts = parts if self.draws("test") else (*parts, "test")
        else:
            parts = READ_BY_ROLE[self.role(language)]
            parts = (*parts, "dev") if self.role(language) == "zero-shot" and self.zero_shot_dev else parts
        names = {part: for_language(getattr(self, part), language) for part in parts}
        return {
            part: name.replace("{lang}", language)
            for part, name in names.items()
            if name is not None and name != REST
        }

    def refuse_one_place_for_two(self, otherwise: str = "") -> None:
        """Raise ValueError if several languages would be read from one place.

        Args:
            otherwise: Another way out, for the hint.
        """
        for part in PARTS:
            places: dict[str, str] = {}
            for language in self.languages:
                place = self.named_parts(language).get(part)
                if place in places:
                    problem = f"{places[place]} and {language} would both be read from {place!r}"
                    hint = f"write {{lang}} into {part}{f', {otherwise}' if otherwise else ''}"
                    raise ValueError(f"{problem}: {hint}")
                if place is not None:
                    places[place] = language


class FilesConfig(PartsConfig):
    """Files below `root`: one pattern per part, with `{lang}` for the language; `*` is allowed.

    Each pattern may be a mapping from languages to patterns, with `default` for those not named.
    """

    root: Name = "."
    """Folder or URI (s3://…, gs://…) that contains the files."""

    @model_validator(mode="after")
    def _patterns_stay_below_the_root(self) -> FilesConfig:
        for language in self.languages:
            for part, name in self.named_parts(language).items():
                if name.startswith("/") or ".." in name.split("/"):
                    raise ValueError(f"{part} must be below root: write the folder into root, not {name!r}")
        return self


class TextConfig(FilesConfig):
    """A source of text files."""

    keeps_marks: ClassVar[bool] = False
    """True to keep byte-order marks inside lines, for formats with character offsets."""
    encoding: Name | dict[str, Name] = "utf-8"
    unlabelled_form: TextForm | dict[str, TextForm] = "same"
    """Form of the files of `unlabelled`. `same`: like the other files. `columns`: a word per line, in the first
    column or behind its number; other columns are ignored. `sentences`: plain text, a sentence per line. `documents`:
    plain text, empty lines between paragraphs, which are split into sentences (needs the package sentencex, `pip
    install sentencex`). Plain text is split into words as `raykd predict` splits it."""

    @model_validator(mode="after")
    def _every_language_has_its_files(self) -> TextConfig:
        if self.unlabelled_form != "same" and self.unlabelled in (None, REST):
            raise ValueError("unlabelled_form says how files are written: name them in unlabelled")
        self.refuse_one_place_for_two()
        return self


def mapping_kind(value: object) -> Literal["one", "each"]:
    """Return "each" for a mapping from languages to sections, "one" for a section.

    The values decide. So a fault inside one form is not reported as a fault of the other.
    """
    inner = list(value.values()) if isinstance(value, dict) else []
    return "each" if inner and all(isinstance(section, dict | Frozen) for section in inner) else "one"


PerLanguage = Annotated[
    Annotated[Value, Tag("one")] | Annotated[dict[str, Value], Tag("each")], Discriminator(mapping_kind)
]
"""A section for all languages, or a mapping from languages to sections, with `default` for the others."""


def refuse_unknown_languages(field: str, value: object, languages: tuple[str, ...]) -> None:
    """Raise ValueError if a setting names an unknown language.

    Args:
        field: Name of the setting.
        value: Value of the setting; only mappings are checked.
        languages: Languages of the corpus.

    Raises:
        ValueError: A key is neither a language of the corpus nor `default`.
    """
    unknown = sorted(set(value) - {*languages, DEFAULT}) if isinstance(value, dict) else []
    if unknown:
        raise ValueError(f"{field} names {', '.join(unknown)}, not among languages ({', '.join(languages)})")


def for_language(value: Value | dict[str, Value] | None, language: str) -> Value | None:
    """Return the value of a setting for one language.

    Args:
        value: One value for all languages, or a mapping from languages, with `default` for the others.
        language: Language of the corpus.
    """
    if isinstance(value, dict):
        return value.get(language, value.get(DEFAULT))
    return value
