"""What a configuration model allows at a place: follows annotations through unions and containers."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from raykd.identity import PlainValue
from raykd.spec.places import KeyPath


def models_at(model: type[BaseModel], path: KeyPath, tree: PlainValue) -> list[type[BaseModel]]:
    """The models that may stand at `path` of `tree`, which validates (or nearly) as `model`.

    In a discriminated union only the member that the tree's own tag names is followed.
    """
    found = list(_members(model, tree))
    for part in path:
        found = [inner for annotation in found for inner in _step(annotation, part)]
        tree = _item(tree, part)
        found = [member for annotation in found for member in _members(annotation, tree)]
    return [annotation for annotation in found if _is_model(annotation)]


def field_names(models: list[type[BaseModel]]) -> tuple[str, ...]:
    """The keys that these models have, sorted, each once."""
    return tuple(sorted({name for model in models for name in model.model_fields}))


def tags_at(
    model: type[BaseModel], path: KeyPath, tree: PlainValue, discriminator: str, *, having: str | None = None
) -> tuple[str, ...]:
    """The values that `discriminator` may have at `path`; of those models alone that have the key `having`."""
    candidates = models_at(model, path, _without(tree, (*path, discriminator)))
    wanted = {discriminator, having or discriminator}
    annotations = [
        m.model_fields[discriminator].annotation for m in candidates if wanted <= m.model_fields.keys()
    ]
    return tuple(sorted({str(value) for annotation in annotations for value in _literals(annotation)}))


def paths_of_field(model: type[BaseModel], key: str) -> tuple[str, ...]:
    """The dotted paths from `model` to every field called `key`, shortest path first."""
    places = {".".join(path) for path in _places(model, key, (), ())}
    return tuple(sorted(places, key=lambda place: (place.count("."), place)))


def _places(
    annotation: Any, key: str, path: tuple[str, ...], seen: tuple[Any, ...]
) -> Iterator[tuple[str, ...]]:
    for member in _members(annotation, None):
        if not _is_model(member) or member in seen:
            continue
        if key in member.model_fields:
            yield (*path, key)
        for name, field in member.model_fields.items():
            yield from _places(field.annotation, key, (*path, name), (*seen, member))


def _members(annotation: Any, tree: Any) -> Iterator[Any]:
    """The alternatives of an annotation, with unions flattened; of models, only the one that the tree names."""
    alternatives = list(_flat(annotation))
    models = [member for member in alternatives if _is_model(member)]
    named = [member for member in models if _named(member, tree)]
    for member in alternatives:
        if not named or not _is_model(member) or member in named:
            yield member


def _flat(annotation: Any) -> Iterator[Any]:
    if hasattr(annotation, "__value__"):  # `type X = ...` and TypeAliasType
        annotation = annotation.__value__
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _flat(get_args(annotation)[0])
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _flat(member)
    else:
        yield annotation


def _named(model: type[BaseModel], tree: Any) -> bool:
    """Whether the tree sets the tag of this model: a field with one allowed value, such as `kind`."""
    if not isinstance(tree, dict):
        return False
    tags = {name: _literals(field.annotation) for name, field in model.model_fields.items()}
    return any(len(values) == 1 and tree.get(name) == values[0] for name, values in tags.items())


def _literals(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _step(annotation: Any, part: str | int) -> list[Any]:
    if _is_model(annotation):
        field = annotation.model_fields.get(str(part))
        return [] if field is None else [field.annotation]
    origin, inner = get_origin(annotation), get_args(annotation)
    if not inner or not isinstance(origin, type):
        return []
    if issubclass(origin, Mapping):
        return [inner[-1]]
    if issubclass(origin, Sequence):
        fixed = origin is tuple and Ellipsis not in inner
        return [inner[part % len(inner)]] if fixed and isinstance(part, int) else [inner[0]]
    return []


def _item(tree: Any, part: str | int) -> Any:
    if isinstance(tree, dict):
        return tree.get(part)
    return tree[part] if isinstance(tree, list) and isinstance(part, int) and part < len(tree) else None


def _without(tree: Any, path: KeyPath) -> Any:
    """`tree` without the key at `path`, so that it selects no alternative."""
    if not path or not isinstance(tree, dict | list):
        return tree
    if isinstance(tree, list):
        return [_without(item, path[1:]) if index == path[0] else item for index, item in enumerate(tree)]
    if len(path) == 1:
        return {key: item for key, item in tree.items() if key != path[0]}
    return {key: _without(item, path[1:]) if key == path[0] else item for key, item in tree.items()}


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
