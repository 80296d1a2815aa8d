"""A slot: the actor that does one run after another, kept from the first run to the last.

An actor takes seconds to start, most of them for its imports.
"""

from __future__ import annotations

import time
from typing import Any

import ray
from ray import tune
from ray.exceptions import RayActorError
from ray.tune.trainable import wrap_function

from raykd.cluster.launch import LAUNCHER
from raykd.cluster.nodes import elsewhere
from raykd.cluster.placement import DRIVER_CPUS
from raykd.cluster.prometheus import count
from raykd.errors import RaykdError, StoreError
from raykd.figures.results import RunResult
from raykd.identity import PlainObject
from raykd.recipes.resources import Resources, worker_resources
from raykd.recipes.run import Run
from raykd.redact import redact

PAUSES_S = (2.0, 20.0)
"""Seconds before a run is tried again on the same node after a fault of the node: no space, store out of reach."""
IDLE, IDLE_S = "idle", 0.2
"""Key of the reports of a slot without a run, and the seconds between two of them."""
AVOID = "avoid"
"""Key in Tune's configuration of a trial: ids of the nodes on which the run may not be done."""


def _job(config: PlainObject) -> None:
    """Do one run as a Tune trial; without a run, wait until Tune stops the trial.

    Faults of the run are reported, not raised: they would occur again. Faults of the node are retried here, and then
    raised: Tune repeats the run elsewhere, `max_failures` times.
    """
    while config["run"] is None:
        tune.report({IDLE: True})
        time.sleep(IDLE_S)
    resources, run = Resources(**config["resources"]), Run.from_plain(config["run"])
    avoid = tuple(config.get(AVOID, ()))
    end: dict[str, Any] = {"result": None, "error": ""}
    try:
        end["result"] = _launched(config["store"], run, resources, avoid).to_plain()
    except RaykdError as error:
        if isinstance(error, StoreError) and error.transient:
            raise
        end["error"] = redact(str(error))
    except RayActorError:
        raise  # an actor started by the slot died: another slot does the run
    except Exception as error:
        end["error"] = redact(f"{type(error).__name__}: {error}")
    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
    tune.report({"run_end": end, "node": node})


class Slot(wrap_function(_job)):
    """The actor of a slot; does one Tune trial after another."""

    @classmethod
    def default_resource_request(cls, config: PlainObject) -> tune.PlacementGroupFactory:
        """Return the resources and allowed nodes of the slot; workers under Ray Train take theirs separately."""
        resources, selector = Resources(**config["resources"]), elsewhere(config.get(AVOID, ()))
        takes = {"CPU": DRIVER_CPUS} if resources.uses_ray_train else worker_resources(resources)
        options: dict[str, Any] = {"bundle_label_selector": [selector]} if selector else {}
        return tune.PlacementGroupFactory([takes], **options)

    def cleanup(self) -> None:
        """End the workers of the slot when Tune ends the actor."""
        try:
            super().cleanup()
        finally:
            LAUNCHER.close()


def _launched(store: str, run: Run, resources: Resources, avoid: tuple[str, ...]) -> RunResult:
    for pause in PAUSES_S:
        try:
            return LAUNCHER.launch(store, run, resources, tune.report, avoid)
        except StoreError as error:
            if not error.transient:
                raise
            count("raykd_store_retries_total")
            time.sleep(pause)
    return LAUNCHER.launch(store, run, resources, tune.report, avoid)
