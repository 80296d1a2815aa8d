"""Environment variables of the processes started by raykd. Variables set by the user keep their values."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType

TELEMETRY_OFF: Mapping[str, str] = MappingProxyType(
    {
        "ORT_DISABLE_TELEMETRY": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "RAY_USAGE_STATS_ENABLED": "0",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # `datasets` asks a server for a file that is not needed, to be counted there.
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    }
)
"""Switch off the reports of libraries to their makers; SECURITY.md lists them. Libraries read the variables when
they are imported. `serving/labeller/session.py` has ONNX Runtime's once more, because it also runs without raykd."""

RAY: Mapping[str, str] = MappingProxyType(
    {
        # Train polls its workers every 2 s by default: the last report before a crash can be lost, and each run starts
        # later.
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
        "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
        "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "60",
        "RAY_AIR_NEW_OUTPUT": "0",
        "RAY_CHDIR_TO_TRIAL_DIR": "0",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
        # On Ctrl-C Tune would end its run as if everything were done.
        "TUNE_DISABLE_SIGINT_HANDLER": "1",
        "TUNE_GLOBAL_CHECKPOINT_S": "3600",
        "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
        # A process without an assigned GPU sees all GPUs, so that a node can be asked for its own; `device.py` decides
        # which process uses one.
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # PyTorch and oneDNN each keep a plan with its buffers for each shape of a matrix product, by default 1,024,
        # and batches have many: they grow to gigabytes while a teacher reads a corpus.
        "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16",
        "LRU_CACHE_CAPACITY": "16",
    }
)
"""Settings of Ray and its workers."""


def set_defaults(variables: Mapping[str, str]) -> None:
    """Set environment variables of the present process, except those already set.

    Args:
        variables: Name to value.
    """
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def worker_variables() -> dict[str, str]:
    """Variables for workers on a joined cluster, with the values of this process.

    Ray refuses variables that the job of this process already sets for its workers; they are left out.
    """
    job = json.loads(os.environ.get("RAY_JOB_CONFIG_JSON_ENV_VAR") or "{}")
    set_by_job = (job.get("runtime_env") or {}).get("env_vars") or {}
    return {name: os.environ[name] for name in (*TELEMETRY_OFF, *RAY) if name not in set_by_job}
