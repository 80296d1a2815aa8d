"""Assignment of files to one corpus: parts, roles of languages, and patterns of file names."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from glob import escape
from typing import Any

from raykd.corpora.detect.file_names import (
    HELD_OUT,
    UNKNOWN,
    FileName,
    language_pattern,
    parts_in_name,
    read_names,
    split_name,
)
from raykd.corpora.guess import Guess, merge_values
from raykd.errors import CorpusError
from raykd.identity import PlainObject

Row = tuple[str | None, str | None, Guess]
"""(language, part, file); None for a language or part that the name does not give."""


class Parts:
    """The files by language and part, with doubts and unused files.

    Attributes:
        root: The folder.
        present: Names of all files in the folder.
        unused: File → reason for which it is not read.
        notes: Doubts, and decisions made for want of something better.
        files: Language → part → files.
    """

    def __init__(self, root: str, present: Sequence[str], unused: Mapping[str, str]):
        self.root, self.present, self.unused = root, present, dict(unused)
        self.notes: list[str] = []
        self.files: dict[str, dict[str, list[Guess]]] = defaultdict(dict)

    def skip(self, files: Iterable[Guess], reason: str) -> None:
        """Note that files are not read, with the reason."""
        self.unused |= {file.name: reason for file in files}

    def files_of_parts(self, *parts: str) -> dict[str, list[Guess]]:
        """Return language → files of some parts."""
        by_language = {
            language: [file for part in parts for file in by_part.get(part, ())]
            for language, by_part in self.files.items()
        }
        return {language: files for language, files in by_language.items() if files}

    def assign(self, files: Sequence[Guess]) -> None:
        """Assign the files to parts.

        A file without a part in its name is train if there is no other train. A file with several parts in its name is
        skipped, with a note.
        """
        names = read_names([file.name for file in files])
        self._skip_ambiguous(
            [file for name, file in zip(names, files, strict=True) if len(name.parts) > 1], names
        )
        rows = [
            (language, next(iter(name.parts), None), file)
            for name, file in zip(names, files, strict=True)
            for language in file.languages or (name.language,)
            if len(name.parts) < 2
        ]
        default_language = self._default_language(rows)
        rows = self._held_out([(language or default_language, part, file) for language, part, file in rows])
        # Files without a part come last: they are train where a language has no part.
        without_part: dict[str, list[Guess]] = {}
        for language, part, file in rows:
            if language is None:
                self.skip([file], "its name says no language, and those of others do")
            elif not file.labelled and part in ("dev", "test"):
                self.skip([file], f"it is called {part}, and no labels are seen in it")
            elif part is None and file.labelled:
                without_part.setdefault(language, []).append(file)
            else:
                part = part if part and file.labelled else "unlabelled"
                self.files[language].setdefault(part, []).append(file)
        for language, files_without_part in without_part.items():
            if {"train", "dev", "test"} & self.files[language].keys():
                reason = "its name says no part (train, dev, test, unlabelled), and those of others do"
                self.skip(files_without_part, reason)
            else:
                self.files[language]["train"] = files_without_part
                self.notes.append(
                    f"{list_names(files_without_part)}: the name says no part, so it is taken as train"
                )
        for by_part in self.files.values():
            texts = [file for file in by_part.get("unlabelled", ()) if file.source == "text"]
            if 0 < len(texts) < len(by_part.get("unlabelled", ())):
                by_part["unlabelled"] = [file for file in by_part["unlabelled"] if file not in texts]
                self.skip(texts, "plain text, and other unlabelled files are there")

    def _skip_ambiguous(self, files: Sequence[Guess], names: Sequence[FileName]) -> None:
        """Skip files with several parts in their names, and note what helps."""
        parts = {name.name: " and ".join(name.parts) for name in names}
        for file in files:
            reason = f"its name says {parts[file.name]}"
            self.skip([file], reason)
            self.notes.append(
                f"{file.name}: {reason}: it is not read; give it the name of one part, or write it into the sweep file"
            )

    def _default_language(self, rows: Sequence[Row]) -> str | None:
        """Return the language of files whose names have none; None if these files are skipped."""
        languages = {language for language, _, _ in rows if language}
        if not languages:
            self.notes.append(
                f"no name of a file or folder says a language: it is called {UNKNOWN!r} here; any other name will do"
            )
            return UNKNOWN
        parts_without = {part for language, part, _ in rows if language is None}
        parts_with = {part for language, part, _ in rows if language}
        if len(languages) == 1 and None not in parts_with and not parts_without & parts_with:
            # `train.en.conll` beside `dev.conll` and `test.conll`.
            return next(iter(languages))
        if 2 * sum(language is None for language, _, _ in rows) > len(rows):
            return UNKNOWN
        return next(iter(languages)) if len(languages) == 1 else None

    def _held_out(self, files: Sequence[Row]) -> list[Row]:
        """Replace the part `held out` (`eval`, `devtest`) by dev or test, the one that the language lacks."""
        parts: dict[str | None, set[str | None]] = defaultdict(set)
        for language, part, _ in files:
            parts[language].add(part)
        rows: list[Row] = []
        for language, part, file in files:
            lacking = [part for part in ("test", "dev") if part not in parts[language]]
            if part == HELD_OUT and not lacking:
                self.skip([file], "its name says dev or test, and there are both")
                continue
            rows.append((language, lacking[0] if part == HELD_OUT else part, file))
            if part == HELD_OUT:
                self.notes.append(f"{file.name} is taken as {lacking[0]}")
        return rows

    def roles(self) -> PlainObject:
        """Return the settings for parts that are read and parts that are drawn; skip files that no role needs."""
        if not any("train" in by_part for by_part in self.files.values()):
            self._refuse_without_train()
        labelled = [language for language, by_part in self.files.items() if "train" in by_part]
        held_out = {language: {"dev", "test"} & self.files[language].keys() for language in labelled}
        bare = [language for language in labelled if not held_out[language]]
        if 2 * len(bare) <= len(labelled):
            # To draw the test of all languages would lose the published ones.
            for language in bare:
                self.notes.append(f"{language} has neither dev nor test, as the others do: it is not read")
                self.skip(self.files.pop(language)["train"], "its language has neither dev nor test")
                labelled.remove(language)
        settings: dict[str, Any] = {}
        if any(held_out[language] < {"dev", "test"} for language in labelled):
            settings["split"] = self._split(labelled, held_out)
        for language in [language for language in self.files if language not in labelled]:
            # Nothing is selected on a language without labels.
            self._leave_part("dev", [language], f"{language} has no train")
            by_part = self.files[language]
            if "split" in settings or "test" not in by_part:
                reason = "no train, and dev is drawn from train" if "test" in by_part else "no train"
                for files in self.files.pop(language).values():
                    self.skip(files, f"{language} has {reason}")
            elif "unlabelled" in by_part:
                settings.setdefault("unlabelled_languages", []).append(language)
                self.notes.append(
                    f"{language} has no labelled train: its text is unlabelled, its test shows the transfer"
                )
            else:
                settings.setdefault("zero_shot_languages", []).append(language)
                self.notes.append(
                    f"{language} has no train: it is read as a zero-shot language, of which only the test is used"
                )
        return settings

    def _refuse_without_train(self) -> None:
        """Raise CorpusError if only files of dev or test have labels: nothing is trained on them."""
        for by_part in self.files.values():
            for file in by_part.get("unlabelled", ()):
                if "train" in parts_in_name(file.name) and {"dev", "test"} & by_part.keys():
                    hint = "label it; where its first lines have one class only, shuffle it; or call it unlabelled"
                    raise CorpusError(file.name, None, "no labels are seen in what is called train", hint)
        held_out = {
            part: [file for files in self.files_of_parts(part).values() for file in files]
            for part in ("dev", "test")
        }
        present = [f"{part} is {list_names(files)}" for part, files in held_out.items() if files]
        if not present:
            return
        skipped = "; ".join(f"{name}: {reason}" for name, reason in [*self.unused.items()][:3])
        problem = f"no file is called train ({', '.join(present)}), and nothing is trained on dev or test"
        hint = (
            "write train into the name of the file to train on; to train on dev all the same, write the section corpus "
            "by hand (docs/SWEEP_FILE.md): name it in train, and draw dev with split: {train: 9, dev: 1, test: 0}"
        )
        raise CorpusError(self.root, None, f"{problem}{f'. Not read: {skipped}' if skipped else ''}", hint)

    def _split(self, labelled: Sequence[str], held_out: Mapping[str, set[str]]) -> dict[str, int]:
        lacking = {
            part: [language for language in labelled if part not in held_out[language]]
            for part in ("dev", "test")
        }
        both = [language for language in labelled if not held_out[language]]

        def of(languages: Sequence[str]) -> str:
            return "" if len(languages) == len(labelled) else f" of {', '.join(languages)}"

        if both:
            self.notes.append(f"no dev and no test{of(both)}: both are drawn from train, 8 : 1 : 1")
            for part in ("dev", "test"):
                self._leave_part(part, labelled, "split draws dev and test of all languages")
            return {"train": 8, "dev": 1, "test": 1}
        for language in lacking["test"]:
            self.files[language]["test"] = self.files[language].pop("dev")
        note = f"no dev{of(lacking['dev'])}"
        if lacking["test"]:
            note = f"no test{of(lacking['test'])}: dev takes the place of the test"
        self.notes.append(f"{note}; dev is drawn from train, 9 : 1")
        self._leave_part("dev", labelled, "split draws dev of all languages")
        return {"train": 9, "dev": 1, "test": 0}

    def _leave_part(self, part: str, languages: Sequence[str], reason: str) -> None:
        for language in languages:
            self.skip(self.files[language].pop(part, []), reason)

    def patterns(self) -> PlainObject:
        """Return part → pattern, or part → language → pattern."""
        settings: dict[str, Any] = {}
        for part in ("train", "unlabelled", "dev", "test"):
            pattern_of = {
                language: self._pattern(by_part[part], _name_of_other_part(by_part, part))
                for language, by_part in self.files.items()
                if part in by_part
            }
            if pattern_of:
                shared = len(pattern_of) == len(self.files)
                settings[part] = self._common(pattern_of) if shared else pattern_of
        return settings

    def _pattern(self, files: list[Guess], near: str) -> str:
        """Return the pattern of a part's files; if none matches these alone, the file named most like `near`."""
        names = sorted(file.name for file in files)
        if len(names) == 1:
            return escape(names[0])
        start, end = _common_start(names), _common_start([name[::-1] for name in names])[::-1]
        end = end[max(0, len(start) + len(end) - min(map(len, names))) :]
        pattern = f"{escape(start)}*{escape(end)}"
        if fnmatch.filter(self.present, pattern) == names:
            self.notes.append(f"{list_names(files)} are read one after the other as one part")
            return pattern
        nearest_name = max(names, key=lambda name: (len(_common_start([name, near])), -len(name)))
        self.skip(
            (file for file in files if file.name != nearest_name), f"{nearest_name} is taken for this part"
        )
        files[:] = [file for file in files if file.name == nearest_name]
        return escape(nearest_name)

    def _common(self, by_language: dict[str, str]) -> Any:
        """Return one pattern with `{lang}` for all languages, if there is one that matches the same files."""
        if len(set(by_language.values())) == 1:
            return next(iter(by_language.values()))
        templates = {language_pattern(pattern, language) for language, pattern in by_language.items()}
        if len(templates) == 1 and "{lang}" in next(iter(templates)):
            return next(iter(templates))
        rows = [split_name(template.replace("{lang}", "\0")) for template in templates]
        if len({len(row) for row in rows}) == 1:
            pieces = [cells[0] if len(set(cells)) == 1 else "*" for cells in zip(*rows, strict=True)]
            template = "".join(pieces).replace("\0", "{lang}")
            same = all(
                fnmatch.filter(self.present, template.replace("{lang}", language))
                == fnmatch.filter(self.present, pattern)
                for language, pattern in by_language.items()
            )
            if pieces.count("*") == 1 and "{lang}" in template and same:
                return template
        return by_language

    def text_forms(self) -> PlainObject:
        """Return the forms of unlabelled files of plain text, by language."""
        forms: dict[str, str] = {}
        for language, files in self.files_of_parts("unlabelled").items():
            written_forms = {file.settings.get("unlabelled_form", "same") for file in files}
            forms[language] = "documents" if "documents" in written_forms else max(written_forms)
            reasons = "; ".join(dict.fromkeys(file.reason for file in files))
            self.notes.append(
                f"{list_names(files)}: {reasons}, without labels: students learn from it what the teacher says"
            )
        return {} if set(forms.values()) <= {"same"} else {"unlabelled_form": merge_values(forms)}

    def encodings(self) -> PlainObject:
        """Return the encodings of files, by language, if one is not UTF-8."""
        by_language: dict[str, str] = {}
        for language, by_part in self.files.items():
            files = {file.name: file.encoding for part in by_part for file in by_part[part]}
            encodings = sorted(set(files.values()) - {"ascii"})
            # Where some are UTF-8, the lines of the others that are not are named when they are read.
            by_language[language] = "utf-8" if "utf-8" in encodings or not encodings else encodings[0]
            if len(encodings) > 1:
                listed = ", ".join(
                    f"{name} {encoding}" for name, encoding in files.items() if encoding != "ascii"
                )
                self.notes.append(
                    f"{language}: files of several encodings ({listed}); corpus.encoding holds for all: convert them"
                )
        return {} if set(by_language.values()) == {"utf-8"} else {"encoding": merge_values(by_language)}


def _name_of_other_part(by_part: Mapping[str, list[Guess]], part: str) -> str:
    """Return a file name of a different part, as a model for the names of this one."""
    return next(
        (by_part[name][0].name for name in ("train", "dev", "test") if name != part and name in by_part), ""
    )


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    return next((first[:place] for place, sign in enumerate(first) if last[place : place + 1] != sign), first)


def list_names(files: Sequence[Guess]) -> str:
    """List the names of at most three files, and count the others."""
    names = [file.name for file in files]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
