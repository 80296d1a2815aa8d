"""Words' vectors from a frozen Transformers encoder, next to a model's own (Wang et al., ACL 2020, §4.1).

Shapes: B batch, P pieces (of the encoder's tokenizer), T time (words), D size.

The encoder is no submodule: it is not trained, not stored with the model's weights, and named by its checksum. What
it gives for a sentence never changes, so a model in training keeps it from epoch to epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import Field
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from raykd.corpora.encoding import TokenBatch
from raykd.corpora.pretrained import HFVocabulary
from raykd.errors import StoreError
from raykd.layers.checkpoint import (
    SAFE,
    checked_weights,
    checkpoint_folder,
    quietly,
    reading_limit,
    weights_checksum,
)
from raykd.layers.pieces import first_of_pieces, mean_of_pieces
from raykd.layers.windows import in_windows
from raykd.spec import Frozen

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from raykd.corpora.pieces import Special

KEPT_BYTES = 2 << 30
"""Of features, for each model in training; what is beyond is computed again each time."""


class ContextualConfig(Frozen):
    """A frozen Transformers encoder, by name or local folder, that gives each word a vector."""

    path: Annotated[str, Field(min_length=1)]
    layers: Annotated[tuple[int, ...], Field(min_length=1)] = (-1,)
    """Hidden states that are read: 0 the embeddings, 1 the first layer, -1 the last."""
    combine: Literal["concat", "mean"] = "concat"
    """How several layers become one vector."""
    pooling: Literal["mean", "first"] = "mean"
    """A word's vector: the mean of its pieces, or its first piece."""
    checksum: str | None = None
    """Checksum of the checkpoint's files (raykd sets it); a checkpoint that changed is refused."""

    def pinned(self) -> ContextualConfig:
        """The same encoder with its checksum, which makes its identity that of the weights."""
        return self.model_copy(update={"checksum": weights_checksum(self.path)})

    def vocabulary(self) -> HFVocabulary:
        """The encoder's own tokenizer."""
        return HFVocabulary.load(str(checkpoint_folder(self.path)))

    def build(self) -> ContextualFeatures:
        """The encoder, ready to read; torch's generator is left as it is.

        Raises:
            StoreError: there is no such checkpoint, it changed, or it has no such layers.
        """
        encoder = _load(str(checkpoint_folder(self.path)), checked_weights(self.path, self.checksum))
        states = encoder.depth + 1
        if wrong := [layer for layer in self.layers if not -states <= layer < states]:
            hint = f"choose from -{states} to {states - 1}"
            raise StoreError(self.path, f"has no layer {wrong[0]}", hint)
        return ContextualFeatures(encoder, self)

    def shape(self) -> dict[str, Any]:
        """What latency depends on."""
        return self.model_dump(mode="json", exclude={"path"} if self.checksum else set())


@dataclass(frozen=True, eq=False)
class Encoder:
    """A frozen encoder: its model, how many pieces it reads at once, and its special pieces."""

    model: Any
    limit: int
    special: Special

    @property
    def depth(self) -> int:
        """How many layers it has."""
        return self.model.config.num_hidden_layers


class ContextualFeatures(nn.Module):
    """Vectors of words by a frozen encoder, in float16's precision.

    From the first batch in training mode on, features are kept in memory, up to `KEPT_BYTES`. Rounding aside they do
    not depend on the sentences they were computed with.
    """

    def __init__(self, encoder: Encoder, config: ContextualConfig):
        super().__init__()
        self.encoder, self.config = encoder, config
        wide = len(config.layers) if config.combine == "concat" else 1
        self.output_size: int = wide * encoder.model.config.hidden_size
        self._kept: dict[bytes, Tensor] = {}
        self._keeps, self._room = False, KEPT_BYTES

    def forward(self, batch: TokenBatch) -> Float[Tensor, "batch time size"]:
        """The features of `batch`, which is in the encoder's own pieces; zero or meaningless on padding."""
        self._keeps |= self.training
        if not self._keeps:
            return self._compute(batch).float()
        keys, lengths = _keys(batch), batch.lengths_B.tolist()
        new = [b for b, key in enumerate(keys) if key not in self._kept]
        found = {keys[b]: self._kept[keys[b]] for b in set(range(len(keys))) - set(new)}
        if new:
            features_BTD = self._compute(_rows(batch, new)).cpu()
            found |= {keys[b]: features_BTD[i, : lengths[b]].clone() for i, b in enumerate(new)}
            self._keep({keys[b]: found[keys[b]] for b in new})
        padded_BTD = pad_sequence([found[key] for key in keys], batch_first=True)
        return padded_BTD.to(batch.lengths_B.device).float()

    def frozen_parameters(self) -> Iterator[nn.Parameter]:
        """The encoder's parameters, which are none of this module's own."""
        return self.encoder.model.parameters()

    def _keep(self, features: dict[bytes, Tensor]) -> None:
        for key, features_TD in features.items():
            if features_TD.nbytes <= self._room:
                self._kept[key] = features_TD
                self._room -= features_TD.nbytes

    @torch.no_grad()
    def _compute(self, batch: TokenBatch) -> Tensor:
        special, device = self.encoder.special, batch.pieces_BP.device
        # One encoder serves all models of a process, so it is moved to where it is called.
        self.encoder.model.to(device)
        with torch.autocast(device.type, enabled=False):
            states_BPD = in_windows(
                self._read, batch.pieces_BP, batch.piece_lengths_B,
                limit=self.encoder.limit, prefix=len(special.prefix), suffix=len(special.suffix),
            )  # fmt: skip
        if self.config.pooling == "first":
            return first_of_pieces(states_BPD, batch).half()
        return mean_of_pieces(states_BPD, batch, suffix=len(special.suffix)).half()

    def _read(self, pieces_BP: Tensor, lengths_B: Tensor) -> Tensor:
        mask_BP = torch.arange(pieces_BP.shape[1], device=lengths_B.device) < lengths_B[:, None]
        model, asked = self.encoder.model, self.config
        output = model(input_ids=pieces_BP, attention_mask=mask_BP.long(), output_hidden_states=True)
        states = [output.hidden_states[layer].float() for layer in asked.layers]
        return torch.cat(states, -1) if asked.combine == "concat" else torch.stack(states).mean(0)


def _keys(batch: TokenBatch) -> list[bytes]:
    # Pieces alone do not say where words begin.
    pieces_BP, first_BT = batch.pieces_BP.cpu().numpy(), batch.first_BT.cpu().numpy()
    ends = zip(batch.piece_lengths_B.tolist(), batch.lengths_B.tolist(), strict=True)
    return [pieces_BP[b, :p].tobytes() + first_BT[b, :t].tobytes() for b, (p, t) in enumerate(ends)]


def _rows(batch: TokenBatch, rows: list[int]) -> TokenBatch:
    index = torch.tensor(rows, device=batch.lengths_B.device)
    lengths_B, piece_lengths_B = batch.lengths_B[index], batch.piece_lengths_B[index]
    return TokenBatch(
        pieces_BP=batch.pieces_BP[index, : int(piece_lengths_B.max())],
        piece_lengths_B=piece_lengths_B,
        first_BT=batch.first_BT[index, : int(lengths_B.max())],
        lengths_B=lengths_B,
    )


# Models of one process share their encoder: several teachers may be in memory at once.
@lru_cache(maxsize=1)
def _load(folder: str, checksum: str) -> Encoder:
    # Transformers takes seconds to import.
    from transformers import AutoModel

    try:
        # What the checkpoint does not hold (for example a pooler) is drawn at random.
        with torch.random.fork_rng(devices=[]), quietly():
            model = AutoModel.from_pretrained(folder, dtype=torch.float32, **SAFE)
    except (OSError, ValueError) as error:
        raise StoreError(
            folder, f"cannot be loaded ({error})", "give a checkpoint that AutoModel reads"
        ) from error
    if getattr(model, "pooler", None) is not None:
        # It is of sentences, not of words.
        model.pooler = None
    model.requires_grad_(False).eval()
    return Encoder(model, reading_limit(model, folder), HFVocabulary.load(folder).special)
