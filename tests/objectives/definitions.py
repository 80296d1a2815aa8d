"""Objectives by definition, enumerating every labelling, apart from `raykd.structures`.

Every function takes the objective, a case and λ, which only a mix uses, and gives the loss of each sentence [B] in
float64.
"""

import math

import torch
from torch import Tensor

from raykd.objectives.structural import Structural
from tests.objectives.cases import LABELLED, Case, attention, known, pieces, teacher_pieces
from tests.oracles.chains import Law, enumerate_chain
from tests.oracles.segmentations import enumerate_spans


def laws(distribution) -> list[Law]:
    """The laws of the sentences of a chain or of spans."""
    if hasattr(distribution, "scores_BTTL"):
        return [law for _, law in enumerate_spans(distribution)]
    return enumerate_chain(distribution)


def softened_laws(distribution, temperature: float) -> list[Law]:
    """Laws of p(y)^(1/ϑ), renormalised."""
    return [Law(law.paths, law.scores / temperature, law.tags) for law in laws(distribution)]


def local(marginals: Tensor, temperature: float, dims: tuple[int, ...]) -> Tensor:
    """Marginals to the power 1/ϑ, renormalised over `dims`."""
    powers = marginals ** (1 / temperature)
    return powers / powers.sum(dims, keepdim=True)


def expected(weights: Tensor, scores: Tensor) -> Tensor:
    """Σ w·s, where what has no weight counts for nothing."""
    return (weights * torch.where(weights > 0, scores, 0)).sum()


def log_probability(law: Law, path: tuple[int, ...]) -> Tensor:
    return law.scores[law.paths.index(path)] - law.log_z


def best(law: Law, k: int) -> list[tuple[tuple[int, ...], float]]:
    """The k best labellings (fewer if fewer exist) with scores."""
    ranked = sorted(zip(law.paths, law.scores.tolist(), strict=True), key=lambda pair: -pair[1])
    return [pair for pair in ranked[:k] if pair[1] > float("-inf")]


def own_labels(case: Case, b: int, law: Law) -> tuple[int, ...] | None:
    """The gold labels of sentence b, or None."""
    if not case.targets.labelled_B[b]:
        return None
    return tuple(case.targets.tags_BT[b, : len(law.paths[0])].tolist())


def gold(objective, case: Case, kd_weight: float) -> Tensor:
    losses = []
    for b, student in enumerate(laws(case.student)):
        labels = own_labels(case, b, student)
        losses.append(student.log_z * 0 if labels is None else -log_probability(student, labels))
    return torch.stack(losses)


def top_1(objective, case: Case, kd_weight: float) -> Tensor:
    pairs = zip(laws(case.student), laws(case.teacher), strict=True)
    return torch.stack(
        [
            -log_probability(student, own_labels(case, b, student) or best(teacher, 1)[0][0])
            for b, (student, teacher) in enumerate(pairs)
        ]
    )


def emission(objective, case: Case, kd_weight: float) -> Tensor:
    warmth = objective.temperature
    of_student, factor = (warmth, warmth**2) if objective.soften == "both" else (1.0, 1.0)
    losses = []
    for b, n in enumerate(case.student.lengths_B.tolist()):
        target = torch.softmax(case.teacher.emissions_BTY[b, :n] / warmth, -1)
        losses.append(
            -factor * (target * torch.log_softmax(case.student.emissions_BTY[b, :n] / of_student, -1)).sum()
        )
    return torch.stack(losses)


def top_k(objective, case: Case, kd_weight: float) -> Tensor:
    losses = []
    for student, teacher in zip(enumerate_chain(case.student), enumerate_chain(case.teacher), strict=True):
        paths = best(teacher, objective.k)
        losses.append(-sum(log_probability(student, path) for path, _ in paths) / len(paths))
    return torch.stack(losses)


def top_wk(objective, case: Case, kd_weight: float) -> Tensor:
    losses = []
    for student, teacher in zip(enumerate_chain(case.student), enumerate_chain(case.teacher), strict=True):
        paths = best(teacher, objective.k)
        weights = torch.softmax(
            torch.tensor([score for _, score in paths], dtype=torch.float64) / objective.temperature, 0
        )
        losses.append(
            -sum(w * log_probability(student, path) for w, (path, _) in zip(weights, paths, strict=True))
        )
    return torch.stack(losses)


def token_marginals(distribution, temperature: float, mode: str) -> list[Tensor]:
    if mode == "global":
        return [law.token_marginals() for law in softened_laws(distribution, temperature)]
    return [local(law.token_marginals(), temperature, (-1,)) for law in laws(distribution)]


def posterior(objective, case: Case, kd_weight: float) -> Tensor:
    warmth, mode, soften = (
        objective.temperature,
        objective.temperature_mode,
        getattr(objective, "soften", "teacher"),
    )
    of_student, factor = (warmth, warmth**2) if soften == "both" else (1.0, 1.0)
    targets = token_marginals(case.teacher, warmth, mode)
    students = token_marginals(case.student, of_student, mode)
    return torch.stack(
        [
            factor * (expected(target, target.log()) - expected(target, student.log()))
            for target, student in zip(targets, students, strict=True)
        ]
    )


def pos_top_wk(objective, case: Case, kd_weight: float) -> Tensor:
    return (posterior(objective, case, kd_weight) + top_wk(objective, case, kd_weight)) / 2


def structural(objective: Structural, case: Case, kd_weight: float) -> Tensor:
    warmth = objective.temperature
    of_student, factor = (warmth, warmth**2) if objective.soften == "both" else (1.0, 1.0)
    teachers = (
        laws(case.teacher) if objective.temperature_mode == "local" else softened_laws(case.teacher, warmth)
    )
    power = warmth if objective.temperature_mode == "local" else 1.0
    losses = []
    for b, (teacher, student) in enumerate(
        zip(teachers, softened_laws(case.student, of_student), strict=True)
    ):
        losses.append(factor * (student.log_z - substructures(teacher, case.student, b, power) / of_student))
    return torch.stack(losses)


def substructures(teacher: Law, student, b: int, power: float) -> Tensor:
    """Σ_u P_t(u) Score_s(u): a MaxEnt student's single tags; a chain's first tag, pairs and last tag."""
    tokens = local(teacher.token_marginals(), power, (-1,))
    emissions = student.emissions_BTY[b, : len(tokens)].double()
    if student.transitions is None:
        return expected(tokens, emissions)
    pairs = teacher.pairwise_marginals()[1:]
    pairs = local(pairs, power, (-2, -1)) if len(pairs) else pairs
    total = expected(tokens[0], student.start + emissions[0]) + expected(tokens[-1], student.end)
    return total + expected(pairs, student.transitions + emissions[1:, None, :].expand_as(pairs))


def mix(objective, case: Case, kd_weight: float) -> Tensor:
    factors = {"none": 1.0, "falling": kd_weight, "rising": 1 - kd_weight}
    labelled_B, total_B = case.targets.labelled_B.double(), torch.zeros(case.student.batch).double()
    shares = {
        "all": (1.0, 1.0),
        "labelled": (labelled_B, LABELLED),
        "unlabelled": (1 - labelled_B, 1 - LABELLED),
    }
    for part in objective.parts:
        counted_B, share = shares[part.text]
        part_B = DEFINITIONS[part.objective.kind](part.objective, case, kd_weight)
        total_B = total_B + part.weight * factors[part.anneal] * part_B * counted_B / share
    return total_B


def representation(objective, case: Case, kd_weight: float) -> Tensor:
    states_BTD, lengths_B = case.hidden[objective.needs[0]]
    size, losses = case.student.tags, []
    weight, bias = known((size, size)), known((size,))
    for b, length in enumerate(lengths_B.tolist()):
        loss = torch.zeros((), dtype=torch.float64)
        for t in range(length):
            mapped = weight @ case.student.emissions_BTY[b, t] + bias
            brought = mapped * (1 + torch.erf(mapped / 2**0.5)) / 2
            loss = loss + distance(objective, states_BTD[b, t], brought)
        losses.append(loss)
    return torch.stack(losses)


def distance(objective, teacher_D: Tensor, student_D: Tensor) -> Tensor:
    if objective.normalise == "softmax":
        teacher_D, student_D = teacher_D.softmax(0), student_D.softmax(0)
    if objective.distance == "mse":
        return sum((w - b) ** 2 for w, b in zip(teacher_D, student_D, strict=True)) / len(teacher_D)
    if objective.normalise == "none":
        teacher_D, student_D = (row_D.clamp(1e-7, 1) for row_D in (teacher_D, student_D))
    return expected(teacher_D, teacher_D.log() - student_D.log())


def logits(objective, case: Case, kd_weight: float) -> Tensor:
    size, losses = case.student.tags, []
    weight, bias = known((size, size)), known((size,))
    for b, marginals_TY in enumerate(token_marginals(case.teacher, 1.0, "local")):
        loss = torch.zeros((), dtype=torch.float64)
        for t, marginals_Y in enumerate(marginals_TY):
            scores_Y = case.student.emissions_BTY[b, t]
            if objective.head == "own":
                scores_Y = weight @ scores_Y + bias
            for score, p in zip(scores_Y, marginals_Y, strict=True):
                loss = (
                    loss + (score - (p.log() if p > math.exp(objective.floor) else objective.floor)) ** 2 / 2
                )
        losses.append(loss)
    return torch.stack(losses)


def hidden_states(objective, case: Case, kd_weight: float) -> Tensor:
    student, teacher = pieces(case.student), teacher_pieces(case.teacher)
    size, losses = case.student.tags, []
    for b, length in enumerate(case.student.lengths_B.tolist()):
        loss = torch.zeros((), dtype=torch.float64)
        for layer, student_layer in layer_pairs(objective):
            for p in range(length):
                state_D, target_D = student[student_layer][b, p], teacher[layer][b, p]
                if len(target_D) != size:
                    state_D = known((size + 1, size)) @ state_D + known((size + 1,))
                loss = loss + length_of(objective, state_D - target_D)
        losses.append(loss)
    return torch.stack(losses)


def attention_scores(objective, case: Case, kd_weight: float) -> Tensor:
    student, teacher = attention(case.student), attention(case.teacher, heads=(2, 3))
    losses = []
    for b, length in enumerate(case.student.lengths_B.tolist()):
        loss = torch.zeros((), dtype=torch.float64)
        for layer, student_layer in layer_pairs(objective):
            student_HPP = student[student_layer][b, :, :length, :length]
            teacher_HPP = teacher[layer][b, :, :length, :length]
            if len(student_HPP) != len(teacher_HPP):
                student_HPP, teacher_HPP = student_HPP.mean(0)[None], teacher_HPP.mean(0)[None]
            for head in range(len(student_HPP)):
                for p in range(length):
                    apart = length_of(objective, student_HPP[head, p] - teacher_HPP[head, p])
                    loss = loss + apart / len(student_HPP)
        losses.append(loss)
    return torch.stack(losses)


def layer_pairs(objective) -> list[tuple[int, int]]:
    if objective.student_layers is not None:
        return list(zip(objective.layers, objective.student_layers, strict=True))
    above = [number for number, layer in enumerate(objective.layers) if layer > 0]
    return [(layer, above.index(n) + 1 if layer else 0) for n, layer in enumerate(objective.layers)]


def length_of(objective, apart_D: Tensor) -> Tensor:
    squares = sum(component**2 for component in apart_D)
    return squares**0.5 if objective.distance == "l2" else squares / len(apart_D)


DEFINITIONS = {
    "hidden_states": hidden_states,
    "attention": attention_scores,
    "gold": gold,
    "top_1": top_1,
    "emission": emission,
    "token": emission,
    "top_k": top_k,
    "top_wk": top_wk,
    "posterior": posterior,
    "pos_top_wk": pos_top_wk,
    "structural": structural,
    "representation": representation,
    "logits": logits,
    "mix": mix,
}
