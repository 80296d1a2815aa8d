"""Faults of a sweep file between several of its sections, and spaces that cannot be searched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from raykd.errors import Fault, SpecError
from raykd.figures.conditions import ConditionError, parse
from raykd.figures.table import EXPORTED, TARGET_DEV, WALL_S, Directions, Figure, objective_fault
from raykd.identity import PlainValue
from raykd.pluralise import pluralise
from raykd.recipes.recipe_faults import recipe_faults
from raykd.redact import redact
from raykd.spec import Document, KeyPath, check, grid_size, has_search
from raykd.sweep.constraints import constraint_fault
from raykd.sweep.spec import (
    NOT_STORED,
    PREPARED,
    SEARCHABLE,
    SweepFile,
    preparation_trees,
    searched_tree,
)
from raykd.sweep.starts import start_fault

# Every corpus is read and every teacher trained before the search.
MOST_PREPARATIONS = 16
# Every student shape is measured before the search; more of them than this is a space written too finely.
MOST_SHAPES = 256


def sweep_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Mismatches between sections of a plain sweep."""
    faults = recipe_faults(sweep)
    if sweep.baseline != "none" and not faults:
        faults = [(("baseline",), message) for _, message in recipe_faults(sweep.on_labels())]
    return (
        faults
        + objective_faults(sweep.objectives, sweep.task_entry.score_name)
        + _target_faults(sweep)
        + _export_faults(sweep)
        + _constraint_faults(sweep)
        + _confirm_faults(sweep)
        + _wall_time_faults(sweep)
    )


def _confirm_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    confirm, runs = sweep.search.confirm, sweep.search.runs_per_setting
    if confirm is None or confirm.seeds > runs:
        return []
    message = f"got {confirm.seeds}, and the search has run {pluralise(runs, 'seed')} already; ask for more"
    return [(("search", "confirm", "seeds"), message)]


def constrained_figures(sweep: SweepFile) -> frozenset[str]:
    """The figures in the sweep's constraints; malformed constraints have none."""
    names: frozenset[str] = frozenset()
    for source in sweep.search.constraints:
        with suppress(ConditionError):
            names |= parse(source, sweep.task_entry.score_name).names
    return names


def _constraint_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    labelled = [language for language in sweep.corpus.languages if sweep.corpus.role(language) == "labelled"]
    faults = [
        (source, constraint_fault(source, sweep.task_entry.score_name, labelled))
        for source in sweep.search.constraints
    ]
    return [
        (("search", "constraints"), f"{source!r}: {message}")
        for source, message in faults
        if message is not None
    ]


def objective_faults(objectives: Directions, score_name: str) -> list[tuple[KeyPath, str]]:
    """Faults of `search.objectives`: the score is missing, or a name or a direction makes no sense."""
    path: KeyPath = ("search", "objectives")
    faults_by_name = {name: objective_fault(name, way, score_name) for name, way in objectives.items()}
    faults: list[tuple[KeyPath, str]] = [
        ((*path, name), message) for name, message in faults_by_name.items() if message is not None
    ]
    if score_name not in objectives and not faults:
        faults.append((path, f"{score_name} must be among them: without it the smallest student wins"))
    return faults


def _target_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Fault of a figure for the dev score of target languages, although `corpus.zero_shot_dev` leaves dev unread."""
    name = TARGET_DEV.full_name(sweep.task_entry.score_name)
    objectives = {
        ("search", "objectives"): sweep.objectives,
        ("search", "constraints"): constrained_figures(sweep),
    }
    if sweep.corpus.zero_shot_dev:
        return []
    message = f"{name} is not known without dev of the target languages; set corpus.zero_shot_dev: true"
    return [(path, message) for path, names in objectives.items() if name in names]


def _export_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Faults of export figures although the student, or in a ratio the teacher, has no export."""
    faults: list[tuple[KeyPath, str]] = []
    constrained = constrained_figures(sweep)
    for figure in EXPORTED:
        path: KeyPath = ("search", "objectives", figure.name)
        if figure.name not in sweep.objectives:
            path = ("search", "constraints")
            if figure.name not in constrained:
                continue
        compared = {"student": sweep.student, **({"teacher": sweep.teachers} if figure.against else {})}
        for side, config in compared.items():
            reason = config.no_export_reason
            if reason and (figure.against or figure.name) not in config.stated_costs:
                message = f"{figure.name} is of the export, and the {side} has none: it {reason}"
                faults.append((path, f"{message}; {_replacement_hint(figure, side)}"))
    return faults


def _replacement_hint(figure: Figure, side: str) -> str:
    """Return a hint: the figure to search for in place of an export figure."""
    if figure.name.startswith("compression"):
        return "search bytes_torch or parameters"
    if figure.against and side == "teacher":
        return f"search {figure.against}"
    base = figure.name.removesuffix("_int8").removesuffix("_p90")
    return f"search {base}_torch"


def _wall_time_faults(sweep: SweepFile) -> list[tuple[KeyPath, str]]:
    """Fault of wall time as an objective: it is known only at the end, but trials are stopped by their costs."""
    if not sweep.search.stopping.stops_trials or WALL_S.name not in sweep.objectives:
        return []
    message = f"{WALL_S.name} is known when a trial has ended; remove it, or set search.stopping.kind: none"
    return [(("search", "objectives", WALL_S.name), message)]


def check_sweep(document: Document) -> None:
    """Validate all alternatives of a sweep file, and check that its space can be searched.

    Args:
        document: The sweep file.

    Raises:
        SpecError: all faults together, in the order of the file.
    """
    # What is written wrongly has no size, and what is too large is not gone through.
    faults = _faults(document) or _size_faults(document) or _alternative_faults(document)
    faults += _section_faults(document) + _password_faults(document)
    # What is written wrongly has no space.
    faults = faults or _start_faults(document)
    if faults:
        raise SpecError(document.ordered(faults))


def _faults(document: Document) -> list[Fault]:
    try:
        check(document, SweepFile, extra=sweep_faults)
    except SpecError as error:
        return list(error.faults)
    return []


def _alternative_faults(document: Document) -> list[Fault]:
    """Faults of further alternatives of corpus and teachers: some do not fit the other sections, or each other."""
    trees = preparation_trees(document.tree)
    if len(trees) == 1:
        return []  # checked already
    fixed = (replace(document, tree={**document.tree, **sections}, unused={}) for sections in trees)
    return [fault for tree in fixed for fault in _faults(tree)]


def _section_faults(document: Document) -> list[Fault]:
    """Faults of sections with a search although they cannot be searched; `check` reports malformed searches."""
    faults = []
    for section, value in document.tree.items():
        try:
            searched = section not in SEARCHABLE and has_search(value)
        except ValueError:
            continue
        if searched:
            faults.append(document.fault((section,), "cannot be searched; give a plain value"))
    return faults


def _start_faults(document: Document) -> list[Fault]:
    """Faults of `search.start_from`: settings outside the space, or a sampler that takes none."""
    search, path = document.tree.get("search", {}), ("search", "start_from")
    start_from = search.get("start_from", ())
    if start_from and search.get("sampler") == "grid":
        return [
            document.fault(path, "a grid tries every setting in its order; remove it, or use another sampler")
        ]
    settings = [] if isinstance(start_from, str) else start_from
    faults = (
        (place, start_fault(setting, searched_tree(document.tree))) for place, setting in enumerate(settings)
    )
    return [document.fault((*path, place), message) for place, message in faults if message is not None]


def _password_faults(document: Document) -> list[Fault]:
    """Faults of URIs with passwords: every trial would store them."""
    message = (
        "holds a password, which every trial would store; write ${NAME}, and set NAME in the environment"
    )
    return [
        document.fault(path, message)
        for path, value in leaves(document.tree)
        if isinstance(value, str) and redact(value) != value and path not in NOT_STORED
    ]


def leaves(value: PlainValue, path: KeyPath = ()) -> Iterator[tuple[KeyPath, PlainValue]]:
    """Yield (key path, value) for all values of a tree except mappings and lists."""
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path, value
        return
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def _size_faults(document: Document) -> list[Fault]:
    """Faults of spaces with too many settings to be computed one by one."""
    tree, faults = document.tree, []
    shapes = grid_size(tree["student"])
    if shapes is None or shapes > MOST_SHAPES:
        message = (
            f"its space has {_many(shapes)} shapes, and each is measured before the search; "
            f"write choices, or ranges with a step (at most {MOST_SHAPES} shapes)"
        )
        faults.append(document.fault(("student",), message))
    sizes = {section: grid_size(tree[section]) for section in PREPARED if section in tree}
    finite = [size for size in sizes.values() if size is not None]
    several = None if len(finite) < len(sizes) else math.prod(finite)
    if several is None or several > MOST_PREPARATIONS:
        searched = [section for section, size in sizes.items() if size != 1]
        message = (
            f"{_many(several)} settings of {' and '.join(searched)}, and each is computed before the search; "
            f"write choices, or ranges with a step (at most {MOST_PREPARATIONS} settings)"
        )
        faults.append(document.fault((searched[0],), message))
    if tree.get("search", {}).get("sampler") == "grid" and grid_size(tree) is None:
        message = "a grid needs a step in every float range; give one, or use sampler: tpe"
        faults.append(document.fault(("search", "sampler"), message))
    return faults


def _many(count: int | None) -> str:
    return "infinitely many" if count is None else str(count)
