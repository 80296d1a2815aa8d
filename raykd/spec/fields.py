"""The models, keys and tags that a configuration model allows at a key path, read from its annotations."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from raykd.identity import PlainValue
from raykd.spec.places import KeyPath


def models_at(model: type[BaseModel], path: KeyPath, tree: PlainValue) -> list[type[BaseModel]]:
    """Return the models that `model` allows for the value at `path`.

    Of a discriminated union, only the member named by the tag in `tree` is followed. `tree` may have faults.
    """
    annotations = list(_members(model, tree))
    for part in path:
        annotations = [child for annotation in annotations for child in _child_annotations(annotation, part)]
        tree = _item(tree, part)
        annotations = [member for annotation in annotations for member in _members(annotation, tree)]
    return [annotation for annotation in annotations if _is_model(annotation)]


def field_names(models: list[type[BaseModel]]) -> tuple[str, ...]:
    """Return the sorted names of all fields of the models."""
    return tuple(sorted({name for model in models for name in model.model_fields}))


def tags_at(
    model: type[BaseModel], path: KeyPath, tree: PlainValue, discriminator: str, *, having: str | None = None
) -> tuple[str, ...]:
    """Return the values possible for `discriminator` at `path`; with `having`, only those of models with that key."""
    candidates = models_at(model, path, _without(tree, (*path, discriminator)))
    required_fields = {discriminator, having or discriminator}
    annotations = [
        m.model_fields[discriminator].annotation
        for m in candidates
        if required_fields <= m.model_fields.keys()
    ]
    return tuple(sorted({str(value) for annotation in annotations for value in _literals(annotation)}))


def paths_of_field(model: type[BaseModel], key: str) -> tuple[str, ...]:
    """Return the dotted paths from `model` to the fields called `key`, shortest first."""
    paths = {".".join(path) for path in _field_paths(model, key, (), ())}
    return tuple(sorted(paths, key=lambda path: (path.count("."), path)))


def _field_paths(
    annotation: Any, key: str, path: tuple[str, ...], parents: tuple[Any, ...]
) -> Iterator[tuple[str, ...]]:
    for member in _members(annotation, None):
        if not _is_model(member) or member in parents:
            continue
        if key in member.model_fields:
            yield (*path, key)
        for name, field in member.model_fields.items():
            yield from _field_paths(field.annotation, key, (*path, name), (*parents, member))


def _members(annotation: Any, tree: Any) -> Iterator[Any]:
    """Flatten the unions of an annotation; where the tree names a model by its tag, the other models are left out."""
    alternatives = list(_flat(annotation))
    models = [member for member in alternatives if _is_model(member)]
    tagged_models = [member for member in models if _has_tag_of(member, tree)]
    for member in alternatives:
        if not tagged_models or not _is_model(member) or member in tagged_models:
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


def _has_tag_of(model: type[BaseModel], tree: Any) -> bool:
    """True if the tree sets the model's tag: a field with one allowed value, such as `kind`."""
    if not isinstance(tree, dict):
        return False
    tags = {name: _literals(field.annotation) for name, field in model.model_fields.items()}
    return any(len(values) == 1 and tree.get(name) == values[0] for name, values in tags.items())


def _literals(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _child_annotations(annotation: Any, part: str | int) -> list[Any]:
    """Return the annotation of the value at key or index `part` of an annotated value; empty if there is none."""
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
    """Return `tree` without the key at `path`, so that it selects no member of a union."""
    if not path or not isinstance(tree, dict | list):
        return tree
    if isinstance(tree, list):
        return [_without(item, path[1:]) if index == path[0] else item for index, item in enumerate(tree)]
    if len(path) == 1:
        return {key: item for key, item in tree.items() if key != path[0]}
    return {key: _without(item, path[1:]) if key == path[0] else item for key, item in tree.items()}


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
