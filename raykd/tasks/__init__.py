"""Tasks: what is predicted, from which columns of a corpus, how it is decoded and scored, what its score is called.

The only wing that knows metrics and tag schemes by name. To add a task, add its module and its line here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from raykd.tasks.aspect import ASPECT
from raykd.tasks.classification import CLASSIFICATION
from raykd.tasks.intent_slots import INTENT_SLOTS
from raykd.tasks.labels import LabelTask
from raykd.tasks.masked_lm import MASKED_LM, MaskedLMTask
from raykd.tasks.ner import NER
from raykd.tasks.pairs import PAIRS
from raykd.tasks.parsing import PARSING, ParsingTask
from raykd.tasks.pos import POS
from raykd.tasks.semantic_parsing import SEMANTIC_PARSING, SemanticParsingTask

Task = LabelTask | ParsingTask | MaskedLMTask | SemanticParsingTask

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

__all__ = ["TASKS", "LabelTask", "MaskedLMTask", "ParsingTask", "SemanticParsingTask", "Task"]
