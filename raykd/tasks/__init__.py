"""Tasks: each has a label form, a metric, and a name for its score.

The only wing that knows metrics by name. To add a task, write its module and add its line here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from raykd.tasks.aspect import ASPECT
from raykd.tasks.classification import CLASSIFICATION
from raykd.tasks.intent_slots import INTENT_SLOTS
from raykd.tasks.masked_lm import MASKED_LM
from raykd.tasks.ner import NER
from raykd.tasks.pairs import PAIRS
from raykd.tasks.parsing import PARSING
from raykd.tasks.pos import POS
from raykd.tasks.semantic_parsing import SEMANTIC_PARSING
from raykd.tasks.task import WITHOUT_GOLD, Task

TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            NER,
            POS,
            ASPECT,
            CLASSIFICATION,
            PAIRS,
            INTENT_SLOTS,
            *PARSING.values(),
            MASKED_LM,
            SEMANTIC_PARSING,
        )
    }
)


def find_task(name: str) -> Task:
    """Return the task of a run: an entry of the table, or its form without gold labels (`ner_agreement`).

    Args:
        name: Name of the task.

    Raises:
        KeyError: There is no such task.
    """
    task = TASKS[name.removesuffix(WITHOUT_GOLD)]
    return task.without_gold if name.endswith(WITHOUT_GOLD) else task


__all__ = ["TASKS", "Task", "find_task"]
