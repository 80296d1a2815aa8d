"""From what single files are to one corpus: parts, roles of languages, file patterns, the settings of its source."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from raykd.corpora.detect.columns import Column, tag_columns
from raykd.corpora.detect.names import UNKNOWN, Named, part_of, pieces_of, with_lang
from raykd.corpora.detect.seen import Seen
from raykd.errors import CorpusError

Parts = dict[str, dict[str, list[Seen]]]
"""Language → part → files."""


def by_language(files: Sequence[tuple[Named, Seen]], notes: list[str], unused: dict[str, str]) -> Parts:
    """The files of each language and part. A file whose name says no part is train where there is no other."""
    files = [
        (replace(named, language=language), seen)
        for named, seen in files
        for language in seen.languages or (named.language,)
    ]
    languages = {named.language for named, _ in files if named.language}
    if not languages:
        notes.append(
            f"no name of a file or folder says a language: it is called {UNKNOWN!r} here; any other name will do"
        )
    silent = sum(named.language is None for named, _ in files)
    alone = UNKNOWN if not languages or 2 * silent > len(files) else None
    if len(languages) == 1 and alone is None:
        alone = next(iter(languages))
    parts: Parts = defaultdict(lambda: defaultdict(list))
    open_ones: list[tuple[str, Seen]] = []
    for named, seen in files:
        language = named.language or alone
        if language is None:
            unused[seen.name] = "its name says no language, and those of others do"
        elif not seen.labelled and named.part in ("dev", "test"):
            unused[seen.name] = f"it is called {named.part}, and no labels are seen in it"
        elif not seen.labelled:
            parts[language]["unlabelled"].append(seen)
        elif named.part is None:
            open_ones.append((language, seen))
        else:
            parts[language][named.part].append(seen)
    for language, seen in open_ones:
        if any(part in parts[language] for part in ("train", "dev", "test") if parts[language][part]):
            unused[seen.name] = "its name says no part (train, dev, test, unlabelled), and those of others do"
        else:
            parts[language]["open"].append(seen)
    for language, own in parts.items():
        texts = [seen for seen in own["unlabelled"] if seen.format == "text"]
        if 0 < len(texts) < len(own["unlabelled"]):
            own["unlabelled"] = [seen for seen in own["unlabelled"] if seen.format != "text"]
            unused |= {seen.name: "plain text, and other unlabelled files are there" for seen in texts}
        if own.pop("open", None) is not None:
            own["train"] = [seen for named, seen in open_ones if named == language]
            notes.append(f"{_shown(own['train'])}: the name says no part, so it is taken as train")
    return {language: {part: own[part] for part in own if own[part]} for language, own in parts.items()}


def roles(parts: Parts, notes: list[str], unused: dict[str, str]) -> tuple[dict[str, Any], Parts]:
    """The settings that say which parts are read and which are drawn, and the parts of each language that remain."""
    parts = {language: dict(own) for language, own in parts.items()}
    if not any("train" in own for own in parts.values()):
        _without_train(parts, notes)
    labelled = [language for language in parts if "train" in parts[language]]
    held = {language: {"dev", "test"} & set(parts[language]) for language in labelled}
    bare = [language for language in labelled if not held[language]]
    if 2 * len(bare) <= len(labelled):
        # To draw the test of all languages would lose the published ones.
        for language in bare:
            notes.append(f"{language} has neither dev nor test, as the others do: it is not read")
            unused |= {
                seen.name: "its language has neither dev nor test" for seen in parts.pop(language)["train"]
            }
            labelled.remove(language)
    settings: dict[str, Any] = {}
    if any(held[language] < {"dev", "test"} for language in labelled):
        settings["split"] = _split(parts, labelled, held, notes, unused)
    for language in [language for language in parts if language not in labelled]:
        own = parts[language]
        # Nothing is selected on a language without labels.
        _leave(parts, [language], ("dev",), unused, f"{language} has no train")
        if "split" in settings or "test" not in own:
            why = "no train, and dev is drawn from train" if "test" in own else "no train"
            unused |= {seen.name: f"{language} has {why}" for each in own.values() for seen in each}
            del parts[language]
        elif "unlabelled" in own:
            settings.setdefault("unlabelled_languages", []).append(language)
            notes.append(
                f"{language} has no labelled train: its text is unlabelled, its test shows the transfer"
            )
        else:
            settings.setdefault("zero_shot_languages", []).append(language)
            notes.append(
                f"{language} has no train: it is read as a zero-shot language, of which only the test is used"
            )
    return settings, parts


def _without_train(parts: Parts, notes: list[str]) -> None:
    taken: list[Seen] = []
    for own in parts.values():
        for seen in own.get("unlabelled", ()):
            if part_of(seen.name) == "train" and {"dev", "test"} & own.keys():
                hint = (
                    "label it; where its first lines have one class only, shuffle it; or call it unlabelled"
                )
                raise CorpusError(seen.name, None, "no labels are seen in what is called train", hint)
        if part := next((part for part in ("dev", "test") if part in own), None):
            own["train"] = own.pop(part)
            taken += own["train"]
    if taken:
        notes.append(f"there is no train: {_shown(taken)} {'takes' if len(taken) == 1 else 'take'} its place")


def _split(
    parts: Parts,
    labelled: Sequence[str],
    held: Mapping[str, set[str]],
    notes: list[str],
    unused: dict[str, str],
) -> dict[str, int]:
    without_dev = [language for language in labelled if "dev" not in held[language]]
    without_test = [language for language in labelled if "test" not in held[language]]
    both = [language for language in labelled if not held[language]]
    if both:
        names = ", ".join(both)
        every = len(both) == len(labelled)
        notes.append(
            f"no dev and no test{'' if every else f' of {names}'}: both are drawn from train, 8 : 1 : 1"
        )
        _leave(parts, labelled, ("dev", "test"), unused, "split draws dev and test of all languages")
        return {"train": 8, "dev": 1, "test": 1}
    if without_test:
        for language in without_test:
            parts[language]["test"] = parts[language].pop("dev")
        names = ", ".join(without_test)
        all_of_them = len(without_test) == len(labelled)
        notes.append(f"no test{'' if all_of_them else f' of {names}'}: dev takes the place of the test")
    else:
        names = ", ".join(without_dev)
        notes.append(f"no dev{'' if len(without_dev) == len(labelled) else f' of {names}'}")
    notes[-1] += "; dev is drawn from train, 9 : 1"
    _leave(parts, labelled, ("dev",), unused, "split draws dev of all languages")
    return {"train": 9, "dev": 1, "test": 0}


def _leave(
    parts: Parts, languages: Sequence[str], which: Sequence[str], unused: dict[str, str], why: str
) -> None:
    for language in languages:
        for part in which:
            unused |= {seen.name: why for seen in parts[language].pop(part, [])}


def patterns(
    parts: Parts, present: Sequence[str], notes: list[str], unused: dict[str, str]
) -> dict[str, Any]:
    """Part → its pattern, or a mapping from languages to patterns."""
    found: dict[str, Any] = {}
    for part in ("train", "unlabelled", "dev", "test"):
        own = {language: parts[language][part] for language in parts if part in parts[language]}
        each = {
            language: _one_pattern(files, _near(parts[language], part), present, notes, unused)
            for language, files in own.items()
        }
        if each:
            found[part] = _common(each, present, whole=len(each) == len(parts))
    return found


def _near(own: Mapping[str, list[Seen]], part: str) -> str:
    """A name of another part, which the names of this one should be like."""
    return next(
        (own[other][0].name for other in ("train", "dev", "test") if other != part and other in own), ""
    )


def _one_pattern(
    files: list[Seen], near: str, present: Sequence[str], notes: list[str], unused: dict[str, str]
) -> str:
    names = sorted(seen.name for seen in files)
    if len(names) == 1:
        return names[0]
    start, end = _common_start(names), _common_start([name[::-1] for name in names])[::-1]
    end = end[max(0, len(start) + len(end) - min(map(len, names))) :]
    if fnmatch.filter(present, f"{start}*{end}") == names:
        notes.append(f"{_shown(files)} are read one after the other as one part")
        return f"{start}*{end}"
    kept = max(names, key=lambda name: (len(_common_start([name, near])), -len(name)))
    unused |= dict.fromkeys((name for name in names if name != kept), f"{kept} is taken for this part")
    files[:] = [seen for seen in files if seen.name == kept]
    return kept


def _common_start(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    return first[
        : next(
            (place for place, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1),
            len(first),
        )
    ]


def _common(each: dict[str, str], present: Sequence[str], *, whole: bool) -> Any:
    """One pattern with `{lang}` for all languages, where there is one that finds the same files."""
    if not whole:
        return each
    if len(set(each.values())) == 1:
        return next(iter(each.values()))
    templates = {with_lang(pattern, language) for language, pattern in each.items()}
    if len(templates) == 1 and "{lang}" in next(iter(templates)):
        return next(iter(templates))
    rows = [pieces_of(template.replace("{lang}", "\0")) for template in templates]
    if len({len(row) for row in rows}) == 1:
        pieces = [cells[0] if len(set(cells)) == 1 else "*" for cells in zip(*rows, strict=True)]
        template = "".join(pieces).replace("\0", "{lang}")
        same = all(
            fnmatch.filter(present, template.replace("{lang}", language)) == fnmatch.filter(present, pattern)
            for language, pattern in each.items()
        )
        if pieces.count("*") == 1 and "{lang}" in template and same:
            return template
    return each


def merged(values: Mapping[str, Any]) -> Any:
    """One value for all languages, or a mapping from languages."""
    first = next(iter(values.values()))
    return first if all(value == first for value in values.values()) else dict(values)


def conll_settings(parts: Parts, notes: list[str]) -> dict[str, Any]:
    """Columns, separator and scheme of CoNLL files, by language; and doubts about them."""
    columns, separators, schemes = {}, {}, {}
    others: dict[int, Column] = {}
    for language, own in parts.items():
        files = [seen for part in ("train", "dev", "test") for seen in own.get(part, []) if seen.labelled]
        if not files:
            continue
        best = files[0]
        tags = tag_columns(best.columns)
        words = next(column.place for column in best.columns if column.kind == "words")
        width = len(best.columns)
        place = tags[0].place
        same = all(len(seen.columns) == width for seen in files)
        columns[language] = {"token": words, "tag": place if same or place != width - 1 else -1}
        separators[language] = best.separator
        schemes[language] = scheme_of(tags[0])
        for column in tags[1:]:
            others.setdefault(column.place, column)
        for seen in files:
            if not _fits(seen, words, tags[0].kind, columns[language]["tag"]):
                held = "; ".join(f"{column.place} {column.words()}" for column in seen.columns)
                notes.append(f"{seen.name} has other columns than {best.name}: {held}")
    notes += [f"column {place} could be the tags too: {others[place].words()}" for place in sorted(others)]
    settings: dict[str, Any] = {"columns": merged(columns)}
    if len(set(separators.values())) == 1:
        settings["separator"] = next(iter(separators.values()))
    if any(scheme != "auto" for scheme in schemes.values()):
        settings["scheme"] = merged(schemes)
    return settings


def _fits(seen: Seen, words: int, kind: str, tag: int) -> bool:
    if not max(words, tag) < len(seen.columns):
        return False
    at = seen.columns[tag]
    return seen.columns[words].kind == "words" and (at.kind == kind or at.distinct == 1)


def scheme_of(column: Column) -> str:
    """`auto`, but for schemes that are not found from the tags of all sentences together."""
    if column.kind == "runs":
        return "io"
    if column.kind == "spans" and column.letters & {"L", "U"} and not column.letters & {"E", "S"}:
        return "bilou"
    return "auto"


def table_settings(parts: Parts) -> dict[str, Any]:
    """The settings of tables of texts, of CoNLL-U, and of Parquet and JSON Lines, by language where these differ."""
    each: dict[str, dict[str, Any]] = {}
    for language, own in parts.items():
        files = [seen for part in ("train", "dev", "test") for seen in own.get(part, []) if seen.settings]
        if files:
            each[language] = dict(files[0].settings)
    keys = {key for own in each.values() for key in own}
    settings = {
        key: merged({language: own.get(key) for language, own in each.items()}) for key in sorted(keys)
    }
    return {key: value for key, value in settings.items() if value is not False}


def text_forms(parts: Parts, notes: list[str]) -> dict[str, Any]:
    """How the unlabelled files of each language are written, where they are plain text."""
    forms: dict[str, str] = {}
    for language, own in parts.items():
        if files := own.get("unlabelled"):
            found = {dict(seen.settings).get("unlabelled_form", "same") for seen in files}
            forms[language] = "documents" if "documents" in found else max(found)
            why = "; ".join(dict.fromkeys(seen.why for seen in files))
            notes.append(
                f"{_shown(files)}: {why}, without labels: students learn from it what the teacher says"
            )
    return {} if set(forms.values()) <= {"same"} else {"unlabelled_form": merged(forms)}


def encodings(parts: Parts, notes: list[str]) -> dict[str, Any]:
    """The encoding of each language's files, where one is not UTF-8."""
    each: dict[str, str] = {}
    for language, own in parts.items():
        files = {seen.name: seen.encoding for part in own for seen in own[part]}
        found = sorted(set(files.values()) - {"ascii"})
        # Where some are UTF-8, the lines of the others that are not are named when they are read.
        each[language] = "utf-8" if "utf-8" in found or not found else found[0]
        if len(found) > 1:
            shown = ", ".join(f"{name} {encoding}" for name, encoding in files.items() if encoding != "ascii")
            notes.append(
                f"{language}: files of several encodings ({shown}); corpus.encoding holds for all: convert them"
            )
    return {} if set(each.values()) == {"utf-8"} else {"encoding": merged(each)}


def shown(names: Sequence[str]) -> str:
    """Some names, and how many more."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _shown(files: Sequence[Seen]) -> str:
    return shown([seen.name for seen in files])
