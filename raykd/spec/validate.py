"""Checking a sweep file against a configuration model: all faults, each with file, line, key path and hint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from raykd.errors import Fault, SpecError
from raykd.identity import PlainValue
from raykd.spec import messages
from raykd.spec.cover import PlainTree, covering_trees, malformed_searches
from raykd.spec.document import GRAMMAR, Document
from raykd.spec.fields import field_names, models_at, paths_of_field, tags_at
from raykd.spec.places import KeyPath, dotted
from raykd.spec.strategies import STRATEGIES, STRATEGY

MOST_FAULTS = 100
"""Most faults reported at once; further ones are reported when these are corrected."""

Config = TypeVar("Config", bound=BaseModel)
Extra = Callable[[Config], list[tuple[KeyPath, str]]]
"""Returns (key path, message) for faults of several settings together, which no single model can detect."""


def check(document: Document, model: type[Config], *, extra: Extra[Config] | None = None) -> None:
    """Validate all alternatives of `document`: the options of choices, both ends of ranges.

    Strategies that the document does not name are validated too, but need not fit the other settings.

    Args:
        document: The sweep file.
        model: The configuration model of a whole sweep file.
        extra: Called with each valid configuration for faults of several settings together.

    Raises:
        SpecError: With all faults, in the order of the file.
    """
    faults = [*document.faults, *_alternative_faults(document, model, extra)]
    for name, value in document.unused.items():
        unused_strategy = replace(
            document, tree={**document.tree, STRATEGY: value}, origins={(STRATEGY,): (STRATEGIES, name)}
        )
        faults += _alternative_faults(unused_strategy, model, None, within=(STRATEGY,))
    if faults:
        raise SpecError(document.ordered(faults))


def _alternative_faults(
    document: Document, model: type[Config], extra: Extra[Config] | None, *, within: KeyPath = ()
) -> list[Fault]:
    """Return the faults of all alternatives of a document at or below the key path `within`."""
    bad_searches = malformed_searches(document.tree)
    bad_paths = tuple(path for path, _ in bad_searches)
    faults = dict.fromkeys(bad_searches)
    for plain in covering_trees(document.tree):
        faults |= dict.fromkeys(_plain_tree_faults(plain, model, extra, bad_paths))
        if len(faults) >= MOST_FAULTS:
            break
    return [document.fault(path, message) for path, message in faults if path[: len(within)] == within]


def _plain_tree_faults(
    plain: PlainTree, model: type[Config], extra: Extra[Config] | None, bad_paths: tuple[KeyPath, ...]
) -> list[tuple[KeyPath, str]]:
    """Return (key path in the document, message) for each fault of one plain tree."""
    try:
        config = model.model_validate_json(json.dumps(plain.tree))
    except ValidationError as error:
        details = error.errors(include_url=False)[:MOST_FAULTS]
        errors = [_locate(dict(detail), plain.tree) for detail in details]
        causes = [cause for cause in errors if not _of_bad_search(cause, plain.origin(cause.path), bad_paths)]
        unknown_keys = {cause.path for cause in causes if cause.type == "extra_forbidden"}
        # An unknown key is reported at the key, even if its value is a choice; other faults at the option's value.
        return [
            ((*plain.origin(path[:-1]), path[-1]) if path in unknown_keys else plain.origin(path), message)
            for path, message in _messages(causes, plain.tree, model)
        ]
    extra_faults = [] if extra is None or bad_paths else extra(config)
    return [(plain.origin(path), message) for path, message in extra_faults]


@dataclass(frozen=True)
class _Error:
    """One error of pydantic.

    Attributes:
        path: Key path of the value in the tree.
        tagged: Length of the key path of the outermost union whose member failed; None outside of unions.
        type: Pydantic's name for the type of error, such as "missing".
        detail: The error as pydantic reports it.
    """

    path: KeyPath
    tagged: int | None
    type: str
    detail: dict[str, Any]


def _of_bad_search(error: _Error, path: KeyPath, bad_paths: tuple[KeyPath, ...]) -> bool:
    """True if the error only follows from a malformed search: the error is at, below or above it."""
    if error.type == "extra_forbidden":
        return False
    return any(path[: len(bad)] == bad[: len(path)] for bad in bad_paths)


def _messages(
    errors: list[_Error], tree: PlainValue, model: type[BaseModel]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield (key path, message) for each cause; errors that only follow from another error are left out."""
    errors = [error for error in errors if not (_half_matched(error, errors) or _long_enough(error))]
    # Keys that unknown keys are likely misspellings of.
    intended_keys = {
        (*error.path[:-1], key)
        for error in errors
        if error.type == "extra_forbidden"
        for key in messages.nearest_words(error.path[-1], _allowed_keys(error, tree, model))
    }
    for path in dict.fromkeys(error.path for error in errors):
        errors_at_path = [error for error in errors if error.path == path]
        kinds = [kind for error in errors_at_path if (kind := messages.KINDS.get(error.type))]
        if kinds:
            yield path, messages.type_message(errors_at_path[0].detail["input"], kinds)
        for error in errors_at_path:
            # A misspelt key is reported as unknown; the right key is then not reported as missing, too.
            follows = error.type == "missing" and path in intended_keys
            if not follows and error.type not in messages.KINDS:
                yield _message(error, tree, model)


def _locate(error: dict[str, Any], tree: Any) -> _Error:
    """Follow pydantic's location through the tree, leaving out parts that are tags of unions."""
    path: list[str | int] = []
    tagged: int | None = None
    node = tree
    for position, part in enumerate(error["loc"]):
        last = position == len(error["loc"]) - 1
        if _holds(node, part):
            node = node[part]
        elif not (last and error["type"] == "missing"):
            tagged = len(path) if tagged is None else tagged
            continue
        path.append(part)
    return _Error(tuple(path), tagged, error["type"], error)


def _holds(tree: Any, part: str | int) -> bool:
    if isinstance(tree, list):
        return isinstance(part, int) and part < len(tree)
    return isinstance(tree, dict) and part in tree


def _half_matched(error: _Error, errors: list[_Error]) -> bool:
    """True if a better matching member of the union fails deeper; only that failure is reported."""
    if error.tagged != len(error.path) or error.type not in messages.KINDS:
        return False
    return any(
        deeper.tagged == len(error.path) < len(deeper.path) and deeper.path[: len(error.path)] == error.path
        for deeper in errors
    )


def _long_enough(error: _Error) -> bool:
    """True if a list is too short only because wrong items were dropped, as they are reported themselves."""
    context, received = error.detail.get("ctx") or {}, error.detail.get("input")
    return error.type == "too_short" and isinstance(received, list) and len(received) >= context["min_length"]


def _message(error: _Error, tree: PlainValue, model: type[BaseModel]) -> tuple[KeyPath, str]:
    path, error_type, detail = error.path, error.type, error.detail
    context, received = detail.get("ctx") or {}, detail.get("input")
    if error_type == "extra_forbidden":
        return path, _unknown_key(error, tree, model)
    if error_type == "missing":
        return path, _missing(path, tree, model)
    if error_type in ("union_tag_invalid", "union_tag_not_found"):
        key = str(context["discriminator"]).strip("'")
        allowed = tags_at(model, path, tree, key)
        if error_type == "union_tag_not_found":
            return (*path, key), f"missing; write `{key}: …`, one of {', '.join(allowed)}"
        return (*path, key), messages.unknown_message(context["tag"], allowed)
    if error_type == "literal_error":
        return path, messages.unknown_message(received, messages.literals(context["expected"]))
    if bounded := messages.bound_message(error_type, context, received):
        return path, bounded
    if error_type in ("value_error", "assertion_error"):
        message = str(context.get("error", detail["msg"]))
        if not isinstance(received, dict):
            message = f"got {messages.format_value(received)}; {message}"
        return path, message
    return path, f"got {messages.format_value(received)}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _allowed_keys(error: _Error, tree: PlainValue, model: type[BaseModel]) -> tuple[str, ...]:
    keys = field_names(models_at(model, error.path[:-1], tree))
    return tuple(sorted((*keys, *GRAMMAR))) if len(error.path) == 1 else keys


TAGS = ("kind", "source")
"""Keys that choose the model of a section."""


def _unknown_key(error: _Error, tree: PlainValue, model: type[BaseModel]) -> str:
    key, allowed = error.path[-1], _allowed_keys(error, tree, model)
    if messages.nearest_words(key, allowed):
        return messages.unknown_message(key, allowed, noun="key ")
    listed = ", ".join(allowed) or "nothing"
    for tag in TAGS:
        if owners := tags_at(model, error.path[:-1], tree, tag, having=str(key)):
            return f"unknown key {key!r} of this {tag}; {tag} {' or '.join(owners)} has it (here: {listed})"
    elsewhere = [path for path in paths_of_field(model, str(key)) if path != dotted(error.path)]
    if elsewhere:
        return f"unknown key {key!r} here; it belongs at {' or '.join(elsewhere[:3])} (here: {listed})"
    return messages.unknown_message(key, allowed, noun="key ")


def _missing(path: KeyPath, tree: PlainValue, model: type[BaseModel]) -> str:
    key = str(path[-1])
    fields = [candidate.model_fields.get(key) for candidate in models_at(model, path[:-1], tree)]
    described = next((field.description for field in fields if field and field.description), "")
    meaning = described.partition(". ")[0].strip().rstrip(".")
    return f"missing; write `{key}: …`" + (f" ({meaning})" if meaning else "")
