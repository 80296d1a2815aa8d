"""Small students trained side by side on one core or GPU, against one after the other: steps, and trials an hour.

    python benchmarks/side_by_side.py                     the built-in corpus, as in sweeps/quickstart.yaml
    python benchmarks/side_by_side.py --wikiann FOLDER    FOLDER: {lang}/train.conllu of WikiAnn
    python benchmarks/side_by_side.py --cuda              the steps on a GPU
    python benchmarks/side_by_side.py --only steps --sizes 16,32 64,128 --decoder maxent --students 2 4 8

Students of one shape (E, H) with different temperatures learn the same batches. Contestants, for one step of every
student:

    one by one            the training loop, student after student
    one batch for all     the same, but text, labels and signals of a batch are gathered once for all students
    stacked               one model with the parameters of all students: embeddings, dropout and head are computed
                          together, LSTMs one by one (oneDNN or cuDNN); loss, gradient norm and optimiser by student
    stacked, bmm          the same, with all LSTMs in both directions as one product of matrices at each place in time
                          (as torch.func's vmap would compute it, but vmap has no rule for torch.lstm)

The weights of the stacked models are compared with those of the loop. Stacking needs students with the same batches and
dropout masks (the same seed), one layer, and no characters. On the CPU, a step is processor time on one thread, the
least of several rounds in turns, so that other work on the machine disturbs little. On a GPU it is wall time.

The second part trains whole runs on one core: one process after the other, and two processes at once. Two processes
can use the time in which one waits for the disk. *Blocked* are the seconds in which a run could not use a free core
(from /proc/self/task/*/schedstat, so this part needs Linux).
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from raykd.figures.results import Score
from raykd.layers.bilstm import reversal
from raykd.layers.dropout import VariationalDropout, step_masks
from raykd.layers.model import Output
from raykd.precompute.plan import precompute
from raykd.precompute.shard_writer import ShardWriter
from raykd.precompute.transfer import transfer_plan
from raykd.recipes.recipe import Recipe
from raykd.recipes.run import Run
from raykd.recipes.signal_needs import stored_needs
from raykd.storage.store import Storage
from raykd.structures import Chain
from raykd.training.execute import execute_run, training_plan
from raykd.training.learning_rate import make_optimiser
from raykd.training.model_folder import build_model
from raykd.training.position_seed import position_seed
from raykd.training.prepare import Preparation, prepare
from raykd.training.student_runs import student_runs
from raykd.training.training_loop import Distiller
from raykd.training.worker import Worker

STEPS, ROUNDS, WARM_UP = 10, 4, 2
EPOCHS, RUN_ROUNDS = 2, 2
MOST_RUNS = 3 + 4 * RUN_ROUNDS
CONTESTANTS = ("one by one", "one batch for all", "stacked", "stacked, bmm")
Step = Callable[[int, Any], None]
"""One optimiser step of all students: number of the batch, and rows of the batch."""


def corpus(wikiann: str | None) -> dict[str, Any]:
    if wikiann is None:
        return {"source": "builtin", "languages": ("en", "de", "es", "nl"), "train": 600}
    return {
        "source": "conll", "root": wikiann, "languages": ("en", "de"), "train": "{lang}/train.conllu",
        "columns": {"token": 1, "tag": 2}, "scheme": "iob2", "cap": 3000,
        "split": {"train": 3, "dev": 1, "test": 1}, "unlabelled": "rest", "unlabelled_cap": 500,
    }  # fmt: skip


def recipe(
    wikiann: str | None,
    size: tuple[int, int],
    decoder: str,
    *,
    temperature: int = 1,
    rate: float = 4e-3,
    batch_tokens: int | None = None,
) -> Recipe:
    """Return the recipe of a student; the teacher is hardly trained, as steps cost the same with any teacher."""
    pieces, tokens = (1000, 1000) if wikiann is None else (16000, 2000)
    return Recipe.model_validate(
        {
            "task": "ner",
            "corpus": corpus(wikiann),
            "teachers": {"kind": "bilstm_crf", "embedding_dim": 32, "hidden_dim": 32, "epochs": 1},
            "student": {
                "kind": "bilstm", "embedding_dim": size[0], "hidden_dim": size[1], "decoder": decoder,
                "vocabulary": {"kind": "wordpiece", "size": pieces},
            },
            "objective": {"kind": "structural", "temperature": temperature},
            "schedule": {"epochs": EPOCHS, "anneal_horizon": EPOCHS},
            "training": {"batch_tokens": batch_tokens or tokens, "learning_rate": rate},
        }
    )  # fmt: skip


def prepared(folder: str, student_recipe: Recipe) -> Preparation:
    """Compute corpus, teacher and transfer set in this process."""
    ready = prepare(student_recipe, Storage(folder))
    for teacher in ready.teachers:
        execute_run(folder, teacher.run, worker=Worker(), report=lambda epoch: None)
    needs = stored_needs([student_recipe], unlabelled=ready.unlabelled)
    plan = transfer_plan(ready.storage, [(teacher, needs) for teacher in ready.teachers])
    assert plan is not None

    def here(plan: Any, rows: Iterable[Any], placement: Any) -> Iterator[Any]:
        yield from map(ShardWriter(plan.store, plan.shard_jobs(), plan.token_budget), rows)

    precompute(plan, launch=here)
    return ready


def loop_of(ready: Preparation, run: Run, device: torch.device) -> Distiller:
    """Return the training loop of `run`, ready for the first step."""
    loop = Distiller(
        build_model(ready.storage, run).to(device), training_plan(ready.storage.uri, run),
        evaluate=lambda model: Score(0.0, 0.0, {}, ()), folder=ready.storage.child("scratch"),
        worker=Worker(device=device),
    )  # fmt: skip
    loop._open_stage(0)
    loop._open_stage_step(None, None)
    loop.model.train()
    return loop


def loops_of(ready: Preparation, runs: Sequence[Run], device: torch.device) -> list[Distiller]:
    return [loop_of(ready, run, device) for run in runs]


def one_by_one(loops: Sequence[Distiller]) -> Step:
    def step(number: int, rows: Any) -> None:
        for loop in loops:
            loop._train_batch(0, number, rows)

    return step


def one_batch(loops: Sequence[Distiller]) -> Step:
    gather = loops[0].data.gather

    def step(number: int, rows: Any) -> None:
        batch = gather(rows, loops[0].worker.device)
        for loop in loops:
            loop.data.gather = lambda rows, device: batch
            loop._train_batch(0, number, rows)

    return step


class Stacked(nn.Module):
    """The models of several students of one shape as one model.

    N students, B batch, P pieces, T labels, D size, Y tags.
    """

    def __init__(self, models: Sequence[Any], *, bmm: bool):
        super().__init__()
        states = [model.state_dict() for model in models]
        self.names, self.hidden, self.bmm = list(states[0]), models[0].encoder.output_size // 2, bmm
        self.weights = nn.ParameterList(torch.stack([state[name] for state in states]) for name in self.names)
        self.dropout = VariationalDropout(models[0].input_dropout.rate)

    def of(self, name: str) -> Tensor:
        return self.weights[self.names.index(name)]

    def forward(self, text: Any) -> list[Chain]:
        tables_NVD, lengths_B = self.of("embedding.table.weight"), text.piece_lengths_B
        count, pieces, size = tables_NVD.shape
        first_N = torch.arange(count, device=tables_NVD.device) * pieces
        inputs_NBPD = nn.functional.embedding(
            text.pieces_BP + first_N[:, None, None], tables_NVD.view(-1, size)
        )
        reversed_BP1 = reversal(lengths_B, text.pieces_BP.shape[1])[None, :, :, None]
        inputs_NBPD = self._dropped(inputs_NBPD)
        both = torch.stack([inputs_NBPD, inputs_NBPD.take_along_dim(reversed_BP1, 2)])
        forward_NBPH, backward_NBPH = self._products(both) if self.bmm else self._kernels(both)
        states_NBPD = torch.cat([forward_NBPH, backward_NBPH.take_along_dim(reversed_BP1, 2)], -1)
        top_NBTD = self._dropped(states_NBPD).take_along_dim(text.first_BT[None, :, :, None], 2)
        weights_NDY, bias_NY = self.of("head.emissions.weight").mT, self.of("head.emissions.bias")
        scores = torch.baddbmm(bias_NY[:, None], top_NBTD.flatten(1, 2), weights_NDY)
        emissions_NBTY = scores.view(*top_NBTD.shape[:3], -1)
        crf = [
            self.of(f"head.{part}")
            for part in ("transitions", "start", "end")
            if f"head.{part}" in self.names
        ]
        return [Chain(emissions_NBTY[n], text.lengths_B, *(part[n] for part in crf)) for n in range(count)]

    def _dropped(self, values_NBPD: Tensor) -> Tensor:
        """Apply one dropout mask to all students: with equal seeds, single students would draw the same mask."""
        count, batch, places, size = values_NBPD.shape
        flat_BPD = values_NBPD.permute(1, 0, 2, 3).reshape(batch, count * places, size)
        return self.dropout(flat_BPD).view(batch, count, places, size).permute(1, 0, 2, 3)

    def _lstm(self, part: str) -> Tensor:
        """Return a weight of the LSTMs in both directions [2, N, …]."""
        return torch.stack([self.of(f"encoder.layers.0.{part}_l0{way}") for way in ("", "_reverse")])

    def _kernels(self, both: Tensor) -> list[Tensor]:
        parts = [self._lstm(part) for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        zero_1BH = both.new_zeros(1, both.shape[2], self.hidden)
        settings = {
            "num_layers": 1,
            "dropout": 0.0,
            "train": True,
            "bidirectional": False,
            "batch_first": True,
        }
        return [
            torch.stack(
                [
                    torch.lstm(
                        inputs_BPD,
                        (zero_1BH, zero_1BH),
                        [part[way, n] for part in parts],
                        has_biases=True,
                        **settings,
                    )[0]
                    for n, inputs_BPD in enumerate(both[way])
                ]
            )
            for way in (0, 1)
        ]

    def _products(self, both: Tensor) -> Tensor:
        ways, count, batch, places, size = both.shape
        weights, turned = self._lstm("weight_ih").flatten(0, 1).mT, self._lstm("weight_hh").flatten(0, 1).mT
        bias = (self._lstm("bias_ih") + self._lstm("bias_hh")).flatten(0, 1)[:, None]
        gates = torch.baddbmm(bias, both.reshape(ways * count, batch * places, size), weights)
        hidden = cell = both.new_zeros(ways * count, batch, self.hidden)
        states = []
        for gates_NBD in gates.view(ways * count, batch, places, -1).unbind(2):
            enter, forget, change, leave = torch.baddbmm(gates_NBD, hidden, turned).chunk(4, 2)
            cell = forget.sigmoid() * cell + enter.sigmoid() * change.tanh()
            hidden = leave.sigmoid() * cell.tanh()
            states.append(hidden)
        return torch.stack(states, 2).view(ways, count, batch, places, self.hidden)


class StackedStep:
    """One optimiser step of all students, with their models stacked."""

    def __init__(self, loops: Sequence[Distiller], *, bmm: bool):
        self.loops, self.device = loops, loops[0].worker.device
        self.model = Stacked([loop.model for loop in loops], bmm=bmm).to(self.device)
        self.weights_by_student = [
            [weight.detach()[n] for weight in self.model.weights] for n in range(len(loops))
        ]
        self.optimisers = [
            make_optimiser(loop.stage.training, weights)
            for loop, weights in zip(loops, self.weights_by_student, strict=True)
        ]

    def __call__(self, number: int, rows: Any) -> None:
        batch = self.loops[0].data.gather(rows, self.device)
        seed = position_seed(self.loops[0].stage.training.seed, 0, number)
        with step_masks(seed, torch.arange(len(rows), device=self.device)):
            chains = self.model(batch.text)
        totals = [
            loop.loss(Output(chain), batch.targets, batch.teacher, kd_weight=loop._kd_weight(0)).total_B.sum()
            for loop, chain in zip(self.loops, chains, strict=True)
        ]
        self.model.zero_grad(set_to_none=True)
        (torch.stack(totals).sum() / len(rows)).backward()
        clip = self.loops[0].stage.training.gradient_clip or math.inf
        for n, (weights, optimiser) in enumerate(zip(self.weights_by_student, self.optimisers, strict=True)):
            for part, weight in zip(weights, self.model.weights, strict=True):
                part.grad = None if weight.grad is None else weight.grad[n]
            norm = nn.utils.clip_grad_norm_(weights, clip)
            if not bool(torch.isfinite(totals[n])) or not bool(torch.isfinite(norm)):
                raise SystemExit("a loss is not finite")
            optimiser.step()

    def difference(self, loops: Sequence[Distiller]) -> float:
        """Return the largest difference between a weight here and in `loops`."""
        return max(
            float((part - loop.model.state_dict()[name]).abs().max())
            for weights, loop in zip(self.weights_by_student, loops, strict=True)
            for name, part in zip(self.model.names, weights, strict=True)
        )


def race(make: Callable[[], list[Distiller]], label: str) -> dict[str, float]:
    """Print and return the milliseconds of a step of one student, by contestant."""
    alone, copies = make(), [make() for _ in range(3)]
    device = alone[0].worker.device
    stacked = StackedStep(copies[1], bmm=False), StackedStep(copies[2], bmm=True)
    contestants: list[Step] = [one_by_one(alone), one_batch(copies[0]), *stacked]
    steps = dict(zip(CONTESTANTS, contestants, strict=True))
    batches = list(enumerate(alone[0]._batches(0)[: STEPS + WARM_UP]))
    for step in steps.values():
        for batch in batches[:WARM_UP]:
            step(*batch)
    differences = [stacked_step.difference(alone) for stacked_step in stacked]
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            started = clock(device)
            for batch in batches[WARM_UP:]:
                step(*batch)
            times[name].append((clock(device) - started) / (len(batches) - WARM_UP) / len(alone))
    least = {name: 1000 * min(seconds) for name, seconds in times.items()}
    cells = " | ".join(f"{step_ms:.1f} ({least['one by one'] / step_ms:.2f}×)" for step_ms in least.values())
    print(f"| {label} | {len(alone)} | {cells} | {max(differences):.0e} |", flush=True)
    return least


def clock(device: torch.device) -> float:
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def whole_run(store: str, run: dict[str, Any]) -> tuple[float, float]:
    """Train a run on the first core of the current process.

    Returns:
        Processor seconds, and seconds in which the run was blocked.
    """
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    wall, cpu, queued = time.monotonic(), time.process_time(), _queued_s()
    execute_run(store, Run.from_plain(run), worker=Worker(), report=lambda epoch: None)
    cpu = time.process_time() - cpu
    return cpu, max(0.0, time.monotonic() - wall - cpu - (_queued_s() - queued))


def _queued_s() -> float:
    """Return the waiting time of the main thread for a core, in seconds."""
    return int(Path(f"/proc/self/task/{os.getpid()}/schedstat").read_text().split()[1]) / 1e9


def trials_an_hour(store: str, runs: Sequence[Run]) -> None:
    """Print runs an hour on one core: one process after the other, and two at once."""
    context, todo = multiprocessing.get_context("spawn"), iter(runs)

    def plain(count: int) -> list[tuple[str, dict[str, Any]]]:
        return [(store, next(todo).to_plain()) for _ in range(count)]

    with context.Pool(1) as one_process, context.Pool(2) as two:
        one_process.starmap(whole_run, plain(1))  # the first run of a process also imports
        two.starmap(whole_run, plain(2), chunksize=1)
        measurements: tuple[list, list] = ([], [])
        for _ in range(RUN_ROUNDS):
            measurements[0].extend(one_process.starmap(whole_run, plain(2), chunksize=1))
            measurements[1].extend(two.starmap(whole_run, plain(2), chunksize=1))
    for name, costs, hidden in (
        ("one after the other", measurements[0], 0.0),
        ("two processes at once", measurements[1], 1.0),
    ):
        cpu = statistics.median(cost[0] for cost in costs)
        blocked = statistics.median(cost[1] for cost in costs)
        hour = 3600 / (cpu + (1 - hidden) * blocked)
        print(
            f"{name}: {cpu:.1f} s of the processor a run, blocked {blocked:.2f} s; {hour:.0f} an hour on one core"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--wikiann", metavar="FOLDER")
    parser.add_argument("--sizes", nargs="+", default=["16,32", "64,128", "128,256"], metavar="E,H")
    parser.add_argument("--decoder", choices=("crf", "maxent"), default="crf")
    parser.add_argument("--students", nargs="+", type=int, default=[2, 4, 8])
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--only", choices=("steps", "runs"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    device = torch.device("cuda" if arguments.cuda else "cpu")
    sizes = [(int(e), int(h)) for e, h in (size.split(",") for size in arguments.sizes)]
    with tempfile.TemporaryDirectory(prefix="raykd-side-by-side-") as folder:
        ready = prepared(folder, recipe(arguments.wikiann, sizes[0], arguments.decoder))

        def run(size: tuple[int, int], **settings: Any) -> Run:
            return student_runs(recipe(arguments.wikiann, size, arguments.decoder, **settings), ready)[0]

        if arguments.only != "runs":
            print("| E, H | students |", " | ".join(CONTESTANTS), "| difference |")
            print("|---|---:|---:|---:|---:|---:|---:|")
            for size in sizes:
                for count in arguments.students:
                    runs = [run(size, temperature=1 + n % 3) for n in range(count)]
                    race(functools.partial(loops_of, ready, runs, device), f"{size[0]}, {size[1]}")
        if arguments.only != "steps" and not arguments.cuda:
            for size in sizes:
                print(f"E {size[0]}, H {size[1]}, {EPOCHS} epochs:", flush=True)
                trials_an_hour(folder, [run(size, rate=4e-3 * (1 + n / 1000)) for n in range(MOST_RUNS)])


if __name__ == "__main__":
    main()
