"""Check a sweep file against a configuration model: all faults, each with line, path and hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from raykd.errors import SpecError
from raykd.spec import messages
from raykd.spec.cover import Variant, covering, malformed
from raykd.spec.document import Document, KeyPath, dotted
from raykd.spec.fields import field_names, models_at, places_of, tags_at

Extra = Callable[[Any], list[tuple[KeyPath, str]]]


def check(document: Document, model: type[BaseModel], *, extra: Extra | None = None) -> None:
    """Validate every alternative that `document` writes down: each option, both ends of each range.

    `extra` is asked about each valid configuration and returns further faults as (path, message); it may
    look at settings together, which a model's own fields cannot.

    Raises:
        SpecError: with every fault found, in the order of the file.
    """
    bad_searches = malformed(document.tree)
    faults = [*document.faults, *(document.fault(path, message) for path, message in bad_searches)]
    bad_paths = tuple(path for path, _ in bad_searches)
    for variant in covering(document.tree):
        for path, message in _complaints(variant, model, extra, bad_paths):
            faults.append(document.fault(path, message))
    if faults:
        ordered = sorted(dict.fromkeys(faults), key=lambda fault: (fault.line or 0, fault.path))
        raise SpecError(tuple(ordered))


def _complaints(
    variant: Variant, model: type[BaseModel], extra: Extra | None, bad_paths: tuple[KeyPath, ...]
) -> list[tuple[KeyPath, str]]:
    try:
        valid = model.model_validate_json(json.dumps(variant.tree))
    except ValidationError as error:
        places = [_placed(dict(each), variant.tree) for each in error.errors(include_url=False)]
        own = [place for place in places if not _echoes(variant.origin(place.path), bad_paths, place)]
        keys = {place.path for place in own if place.error["type"] == "extra_forbidden"}
        return [
            (_written(variant, path, path in keys), message)
            for path, message in _told(own, variant.tree, model)
        ]
    complaints = [] if extra is None or bad_paths else extra(valid)
    return [(variant.origin(path), message) for path, message in complaints]


def _written(variant: Variant, path: KeyPath, is_key: bool) -> KeyPath:
    """Where the cause was written: an unknown key itself, also where its value is one option of a choice."""
    return (*variant.origin(path[:-1]), path[-1]) if is_key else variant.origin(path)


def _echoes(path: KeyPath, bad_paths: tuple[KeyPath, ...], place: _Place) -> bool:
    """Whether an error only repeats that a search is malformed: at, below, or of a model that holds it."""
    if place.error["type"] == "extra_forbidden":
        return False
    return any(path[: len(bad)] == bad[: len(path)] for bad in bad_paths)


@dataclass(frozen=True)
class _Place:
    """One pydantic error brought back to the tree; `tagged`: how many parts stand before a union's tag."""

    path: KeyPath
    tagged: int | None
    error: dict[str, Any]


def _told(places: list[_Place], tree: Any, model: type[BaseModel]) -> Iterator[tuple[KeyPath, str]]:
    """(path, sentence) for each cause; consequences of another cause are left out."""
    places = [place for place in places if not _half_matched(place, places)]
    renamed = {
        (*place.path[:-1], near)
        for place in places
        if place.error["type"] == "extra_forbidden"
        and (near := messages.nearest(place.path[-1], _allowed_keys(place, tree, model)))
    }
    for path in dict.fromkeys(place.path for place in places):
        here = [place for place in places if place.path == path]
        kinds = [kind for place in here if (kind := messages.expected_kind(place.error["type"]))]
        if kinds:
            yield path, messages.type_message(here[0].error["input"], kinds)
        for place in here:
            # A misspelt key already told names the field that is "missing" only because of it.
            consequence = place.error["type"] == "missing" and path in renamed
            if not consequence and not messages.expected_kind(place.error["type"]):
                yield _sentence(place, tree, model)


def _placed(error: dict[str, Any], tree: Any) -> _Place:
    """Follow pydantic's location through the tree; parts that are no key there are union tags: dropped."""
    path: list[str | int] = []
    tagged: int | None = None
    here = tree
    for position, part in enumerate(error["loc"]):
        last = position == len(error["loc"]) - 1
        if _holds(here, part):
            here = here[part]
        elif not (last and error["type"] == "missing"):
            tagged = len(path) if tagged is None else tagged
            continue
        path.append(part)
    return _Place(tuple(path), tagged, error)


def _holds(tree: Any, part: str | int) -> bool:
    if isinstance(tree, list):
        return isinstance(part, int) and part < len(tree)
    return isinstance(tree, dict) and part in tree


def _half_matched(place: _Place, places: list[_Place]) -> bool:
    """Whether another member of the same union fitted better, failing only deeper: then that is the fault."""
    if place.tagged != len(place.path) or not messages.expected_kind(place.error["type"]):
        return False
    return any(
        other.tagged == len(place.path) < len(other.path) and other.path[: len(place.path)] == place.path
        for other in places
    )


def _allowed_keys(place: _Place, tree: Any, model: type[BaseModel]) -> tuple[str, ...]:
    return field_names(models_at(model, place.path[:-1], tree))


def _sentence(place: _Place, tree: Any, model: type[BaseModel]) -> tuple[KeyPath, str]:
    path, error = place.path, place.error
    context, got, sort = error.get("ctx") or {}, error.get("input"), error["type"]
    if sort == "extra_forbidden":
        return path, _unknown_key(place, tree, model)
    if sort == "missing":
        return path, _missing(path, tree, model)
    if sort in ("union_tag_invalid", "union_tag_not_found"):
        key = str(context["discriminator"]).strip("'")
        allowed = tags_at(model, path, tree, key)
        if sort == "union_tag_not_found":
            return (*path, key), f"missing; write `{key}: …`, one of {', '.join(allowed)}"
        return (*path, key), messages.unknown(context["tag"], allowed)
    if sort == "literal_error":
        return path, messages.unknown(got, messages.literals(context["expected"]))
    if bounded := messages.bound_message(sort, context, got):
        return path, bounded
    if sort in ("value_error", "assertion_error"):
        told = str(context.get("error", error["msg"]))
        return path, told if isinstance(got, dict) else f"got {messages.shown(got)}; {told}"
    return path, f"got {messages.shown(got)}; {error['msg'][:1].lower()}{error['msg'][1:]}"


def _unknown_key(place: _Place, tree: Any, model: type[BaseModel]) -> str:
    key, allowed = place.path[-1], _allowed_keys(place, tree, model)
    elsewhere = [where for where in places_of(model, str(key)) if where != dotted(place.path)]
    if elsewhere and not messages.nearest(key, allowed):
        listed = ", ".join(allowed) or "nothing"
        return f"unknown key {key!r} here; it belongs at {' or '.join(elsewhere[:3])} (here: {listed})"
    return messages.unknown(key, allowed, what="key ")


def _missing(path: KeyPath, tree: Any, model: type[BaseModel]) -> str:
    key = str(path[-1])
    fields = [found.model_fields.get(key) for found in models_at(model, path[:-1], tree)]
    described = next((field.description for field in fields if field and field.description), "")
    meaning = described.partition(". ")[0].strip().rstrip(".")
    return f"missing; write `{key}: …`" + (f" ({meaning})" if meaning else "")
