"""Asking an annotator: batches of texts go to actors on the nodes, and answers are handed over as they come.

The driver keeps the limit of texts a minute, the tries and their pauses; an actor only asks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Literal, NamedTuple

import ray
from ray.exceptions import RayError

from raykd.corpora.answers import AnswerError, AskedText, answer_json
from raykd.corpora.answers.stored_answer import StoredAnswer
from raykd.errors import RaykdError, RunError
from raykd.pluralise import pluralise
from raykd.redact import redact
from raykd.teachers import AskedAnnotator
from raykd.teachers.asked_annotator import AnnotatorSource, Labeller

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""Pause before the second try of a batch, and the longest one; each further pause is twice as long."""
LOOK_S = 0.2
"""Longest wait for a reply before pauses and time limits are looked at."""
MOST_CHARACTERS = 400
"""Length of a problem in messages and in the store."""
FAULTS_OF_CODE = (ImportError, NameError, SyntaxError)
FAULTS_OF_REPLIES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of reading a reply that is no answer. Any other error stands for a service that does not reply."""
_END = object()

OnAnswers = Callable[[Sequence[StoredAnswer]], None]


class Failure(NamedTuple):
    """An error in asking about a text.

    Attributes:
        kind: `code`: it would fail again; `reply`: a reply that is no answer; `service`: no reply; `actor`: the actor
            has ended, or hangs.
        problem: The error with its place, without keys.
    """

    kind: Literal["code", "reply", "service", "actor"]
    problem: str


class Reply(NamedTuple):
    """The answers to a batch.

    Attributes:
        answers: Answers to the first texts of the batch.
        failure: Reason why the others have none; None where all have one.
    """

    answers: list[StoredAnswer]
    failure: Failure | None = None


class Asker:
    """Asks an annotator, in an actor."""

    def __init__(self, annotator: AskedAnnotator, source: AnnotatorSource, keys: Mapping[str, str]):
        """Set the keys; the annotator is opened with its first texts.

        Args:
            annotator: Configuration of the annotator.
            source: What labels.
            keys: Environment variable → its value.
        """
        os.environ.update(keys)
        self._annotator, self._source, self._keys = annotator, source, keys
        self._labeller: Labeller | None = None

    def ask(self, texts: Sequence[AskedText]) -> Reply:
        """Put texts to the annotator. Errors are part of the reply.

        Args:
            texts: The texts.
        """
        answers = list[StoredAnswer]()
        try:
            if self._labeller is None:
                self._labeller = self._annotator.open(self._source)
            values = iter(_checked(self._labeller(texts), len(texts)))
            for text in texts:
                if (value := next(values, _END)) is _END:
                    break
                answers.append(self._stored(text, value))
            if len(answers) < len(texts) or next(values, _END) is not _END:
                got = len(answers) if len(answers) < len(texts) else "more"
                answers.clear()  # which answer is about which text is not known
                raise ValueError(f"expected {pluralise(len(texts), 'answer')}, got {got}")
        except Exception as error:
            return Reply(answers, self._failure(error))
        return Reply(answers)

    def _stored(self, text: AskedText, value: Any) -> StoredAnswer:
        form = self._annotator.answers
        try:
            answer = answer_json(value, text, form)
        except AnswerError as error:
            return _unusable(text, self._without_keys(str(error)))
        samples = value.get(form) if isinstance(value, Mapping) else value
        count = len(samples) if form == "samples" and isinstance(samples, Sequence) else 1
        return StoredAnswer(text.key, answer, origin=_origin(text), samples=count)

    def _failure(self, error: Exception) -> Failure:
        kind = "service"
        if isinstance(error, FAULTS_OF_CODE):
            kind = "code"
        elif isinstance(error, FAULTS_OF_REPLIES) and not isinstance(error, OSError):
            kind = "reply"
        place = self._source.line_of(error)
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Failure(kind, self._without_keys(f"{place}: {message}" if place else message))

    def _without_keys(self, text: str) -> str:
        for name, value in self._keys.items():
            text = text.replace(value, f"${name}") if value else text
        return redact(" ".join(text.split()))[:MOST_CHARACTERS]


def _origin(text: AskedText) -> str:
    return f"the answer to {text.text[:40]!r}"


def _unusable(text: AskedText, problem: str) -> StoredAnswer:
    return StoredAnswer(text.key, "", problem, _origin(text))


def _checked(values: Any, count: int) -> Iterable[Any]:
    """Return what a function returned, if it may be a list of answers."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise TypeError(f"expected {pluralise(count, 'answer')} in a list, got {type(values).__name__}")
    return values


@dataclass(frozen=True, order=True)
class Batch:
    """Texts that are put to the annotator together; the one that may be tried first is the smallest.

    Attributes:
        not_before: Time at which it may be tried, in seconds of the monotonic clock.
        texts: The texts.
        failures: Times that it failed without any answer.
    """

    not_before: float
    texts: Sequence[AskedText] = field(compare=False)
    failures: int = field(default=0, compare=False)


class _InFlight(NamedTuple):
    """A batch with an actor."""

    actor: Any
    batch: Batch
    deadline: float


class Asking:
    """Asks an annotator about texts, with actors of a running Ray."""

    def __init__(
        self,
        annotator: AskedAnnotator,
        source: AnnotatorSource,
        *,
        keys: Mapping[str, str],
        actors: int,
        on_answers: OnAnswers,
    ):
        """Start no actor yet.

        Args:
            annotator: Configuration of the annotator.
            source: What labels.
            keys: Environment variable → its value.
            actors: Number of actors; they must have room.
            on_answers: Stores answers. An error that it raises ends the asking, after the batches in flight.
        """
        self._annotator, self._on_answers = annotator, on_answers
        options: dict[str, Any] = {"num_cpus": annotator.cpus, "num_gpus": annotator.gpus, "max_restarts": 0}
        actor: Any = ray.remote(Asker)
        self._start: Callable[[], Any] = lambda: actor.options(**options).remote(annotator, source, keys)
        self._most_actors = actors
        self._next_at = 0.0
        self._error: RaykdError | None = None
        self._in_flight: dict[Any, _InFlight] = {}

    def ask(self, texts: Sequence[AskedText]) -> None:
        """Ask about texts. Batches that are with an actor when something fails are waited for.

        Args:
            texts: The texts.

        Raises:
            RunError: The code is at fault, or the service does not reply after all tries.
        """
        size = self._annotator.batch_size
        waiting = [Batch(0.0, texts[first : first + size]) for first in range(0, len(texts), size)]
        idle = [self._start() for _ in range(min(self._most_actors, len(waiting)))]
        try:
            while self._in_flight or (waiting and self._error is None):
                if self._error is None:
                    self._hand_out(waiting, idle)
                for actor, batches in self._replies():
                    idle.append(actor)
                    for batch in batches:
                        heappush(waiting, batch)
        finally:
            for actor in (*idle, *(flight.actor for flight in self._in_flight.values())):
                ray.kill(actor)
        if self._error is not None:
            raise self._error

    def _hand_out(self, waiting: list[Batch], idle: list[Any]) -> None:
        """Give batches of a heap to idle actors, as far as the limit of texts a minute allows."""
        while waiting and idle:
            now = time.monotonic()
            if now < max(self._next_at, waiting[0].not_before):
                return
            batch, actor = heappop(waiting), idle.pop()
            deadline = now + self._annotator.timeout_s
            self._in_flight[actor.ask.remote(batch.texts)] = _InFlight(actor, batch, deadline)
            if self._annotator.texts_per_minute is not None:
                seconds = 60 * len(batch.texts) / self._annotator.texts_per_minute
                self._next_at = max(now, self._next_at) + seconds

    def _replies(self) -> list[tuple[Any, list[Batch]]]:
        """Take the replies that have come, or wait a moment: free actors, and batches to try again."""
        if not self._in_flight:
            time.sleep(LOOK_S)
            return []
        ready, _ = ray.wait(list(self._in_flight), num_returns=len(self._in_flight), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(self._in_flight), num_returns=1, timeout=LOOK_S)
        replies = [(self._in_flight.pop(reference), self._reply(reference)) for reference in ready]
        for reference, flight in list(self._in_flight.items()):
            if time.monotonic() > flight.deadline:
                problem = f"no reply within teachers.timeout_s: {self._annotator.timeout_s:g}"
                replies.append((self._in_flight.pop(reference), Reply([], Failure("actor", problem))))
        return [(self._living(flight, reply), self._take(flight.batch, reply)) for flight, reply in replies]

    def _reply(self, reference: Any) -> Reply:
        try:
            return ray.get(reference)
        except RayError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            problem = f"its actor ended ({lines[0] if lines else type(error).__name__})"
            return Reply([], Failure("actor", redact(problem)[:MOST_CHARACTERS]))

    def _living(self, flight: _InFlight, reply: Reply) -> Any:
        """The actor, or a new one in the place of one that hangs or has ended."""
        if reply.failure is None or reply.failure.kind != "actor":
            return flight.actor
        ray.kill(flight.actor)
        return self._start()

    def _take(self, batch: Batch, reply: Reply) -> list[Batch]:
        """Hand answers over; return the batches to try again."""
        batches = list[Batch]()
        try:
            if reply.answers:
                self._on_answers(reply.answers)
            if reply.failure is not None and self._error is None:
                failures = 1 if reply.answers else batch.failures + 1
                batches = self._after(reply.failure, batch.texts[len(reply.answers) :], failures)
        except RaykdError as error:
            self._error = self._error or error
        return batches

    def _after(self, failure: Failure, texts: Sequence[AskedText], failures: int) -> list[Batch]:
        """Return the batches to try after a failure."""
        title, kept = self._annotator.title, "the answers so far are kept: run it again for the others"
        if failure.kind == "code":
            raise RunError(f"{title}: {failure.problem}; {kept}")
        if failures < self._annotator.tries:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failures - 1))
            return [Batch(time.monotonic() + pause, texts, failures)]
        # One of several texts may be at fault: each has a try of its own.
        if failure.kind != "service" and len(texts) > 1:
            return [Batch(0.0, [text], failures - 1) for text in texts]
        if failure.kind != "reply":
            raise RunError(
                f"{title} failed {pluralise(failures, 'time')} in a row: {failure.problem}; {kept}"
            )
        self._on_answers([_unusable(texts[0], failure.problem)])
        return []
