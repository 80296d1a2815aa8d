"""The enumeration oracle of spans: every flat labelled segmentation of every sentence, scored one by one.

Shapes: B batch, T time, L labels. Nothing here calls `raykd`: spans and their tags enter through their attributes.
An entity is (first, last, label), both words included.
"""

from collections.abc import Iterator

import torch

from tests.oracles.chains import Law

Entities = tuple[tuple[int, int, int], ...]


def segmentations(length: int, labels: int, first: int = 0) -> Iterator[Entities]:
    """All sets of labelled entities of the words first..length - 1 without overlap."""
    if first == length:
        yield ()
        return
    for rest in segmentations(length, labels, first + 1):
        yield rest
    for last in range(first, length):
        for rest in segmentations(length, labels, last + 1):
            yield from (((first, last, label), *rest) for label in range(labels))


def tags_of(entities: Entities, length: int, tags) -> tuple[int, ...]:
    """The BIOES tags of the entities."""
    path = [tags.outside] * length
    for first, last, label in entities:
        if first == last:
            path[first] = tags.single[label]
            continue
        path[first], path[last] = tags.begin[label], tags.end[label]
        path[first + 1 : last] = [tags.inside[label]] * (last - first - 1)
    return tuple(path)


def enumerate_spans(spans) -> list[tuple[list[Entities], Law]]:
    """All segmentations, sentence by sentence, and the distribution over tag paths, in the same order."""
    result = []
    for row, length in enumerate(spans.lengths_B.tolist()):
        scores = spans.scores_BTTL[row].double()
        all_entities = list(segmentations(length, scores.shape[2]))
        totals = [
            torch.stack([scores.new_zeros(()), *(scores[e] for e in entities)]).sum()
            for entities in all_entities
        ]
        paths = [tags_of(entities, length, spans.tags) for entities in all_entities]
        result.append((all_entities, Law(paths, torch.stack(totals), 4 * scores.shape[2] + 1)))
    return result


def span_probabilities(all_entities: list[Entities], law: Law, time: int, labels: int) -> torch.Tensor:
    """p(entity) [T, T, L] in float64."""
    result = torch.zeros(time, time, labels, dtype=torch.float64)
    for entities, probability in zip(all_entities, law.probabilities, strict=True):
        for entity in entities:
            result[entity] += probability
    return result
