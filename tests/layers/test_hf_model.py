"""The inside of Transformers encoders: attention scores, states of every piece, and the rows of a pruned vocabulary."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    FNetConfig,
    FNetForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    RoFormerConfig,
    RoFormerForMaskedLM,
)

from raykd.corpora.encoded_text import TokenBatch
from raykd.errors import StoreError
from raykd.layers.masked_language_model import MaskedLanguageModel

SIZES = {"vocab_size": 30, "pad_token_id": 1}
BERT = {
    **SIZES, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 8,
    "max_position_embeddings": 14,
}  # fmt: skip
KINDS = {
    "bert": lambda: BertForMaskedLM(BertConfig(**BERT)),
    "roberta": lambda: RobertaForMaskedLM(RobertaConfig(**BERT)),
    "distilbert": lambda: DistilBertForMaskedLM(
        DistilBertConfig(**SIZES, dim=12, n_layers=3, n_heads=3, hidden_dim=8, max_position_embeddings=14)
    ),
}


def encoder(kind: str = "bert", limit: int = 10) -> MaskedLanguageModel:
    torch.manual_seed(0)
    return MaskedLanguageModel(KINDS[kind](), limit=limit, prefix=1, suffix=1).eval()


def batch(*lengths: int) -> TokenBatch:
    generator = torch.Generator().manual_seed(0)
    lengths_B = torch.tensor(lengths)
    pieces_BP = torch.randint(2, 30, (len(lengths), max(lengths)), generator=generator)
    inside_BP = torch.arange(max(lengths)) < lengths_B[:, None]
    first_BT = torch.tensor([[1, 2]] * len(lengths))
    return TokenBatch(
        torch.where(inside_BP, pieces_BP, 1), lengths_B, first_BT, torch.full((len(lengths),), 2)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_softmax_of_attention_scores_is_the_attention_of_transformers(kind):
    model, tokens = encoder(kind), batch(7, 4)
    with torch.inference_mode():
        scores = model(tokens, attention=(1, 3)).attention
        model.model.set_attn_implementation("eager")
        mask_BP = (torch.arange(7) < tokens.piece_lengths_B[:, None]).long()
        whole = model.model.base_model(
            input_ids=tokens.pieces_BP, attention_mask=mask_BP, output_attentions=True
        ).attentions
    assert set(scores) == {1, 3}
    for layer, scores_BHPP in scores.items():
        masked_BHPP = scores_BHPP.masked_fill(mask_BP[:, None, None] == 0, -torch.inf)
        torch.testing.assert_close(masked_BHPP.softmax(-1), whole[layer - 1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_states_of_every_piece_are_those_of_transformers(kind):
    model, tokens = encoder(kind), batch(7, 4)
    with torch.inference_mode():
        output = model(tokens, layers=(-1,), pieces=(0, 2))
        mask_BP = (torch.arange(7) < tokens.piece_lengths_B[:, None]).long()
        whole = model.model.base_model(
            input_ids=tokens.pieces_BP, attention_mask=mask_BP, output_hidden_states=True
        ).hidden_states
    assert set(output.pieces) == {0, 2}
    for layer, states_BPD in output.pieces.items():
        torch.testing.assert_close(states_BPD, whole[layer])
    torch.testing.assert_close(output.hidden[-1], whole[3][:, 1:3])
    assert torch.equal(output.piece_lengths_B, tokens.piece_lengths_B)


def test_asking_for_the_inside_changes_no_score():
    model, tokens = encoder(), batch(7, 4)
    with torch.inference_mode():
        plain = model(tokens).distribution.emissions_BTY
        with_states = model(tokens, pieces=(0, 1, 2, 3), attention=(1, 2, 3)).distribution.emissions_BTY
    torch.testing.assert_close(plain, with_states)


@pytest.mark.parametrize("lengths", [(13, 4, 6), (13, 12)])
def test_sentences_that_are_not_read_whole_have_no_attention_scores(lengths):
    model, tokens = encoder(), batch(*lengths)
    with torch.inference_mode():
        scores_BHPP = model(tokens, attention=(2,)).attention[2]
        assert scores_BHPP.shape == (len(lengths), 3, 13, 13)
        for row, length in enumerate(lengths):
            if length > 10:
                assert (scores_BHPP[row] == -torch.inf).all()
                continue
            single = TokenBatch(
                tokens.pieces_BP[row : row + 1, :length], torch.tensor([length]), tokens.first_BT[:1],
                tokens.lengths_B[:1],
            )  # fmt: skip
            expected_HPP = model(single, attention=(2,)).attention[2][0]
            torch.testing.assert_close(
                scores_BHPP[row, :, :length, :length], expected_HPP, rtol=1e-4, atol=1e-5
            )


def test_an_encoder_without_queries_is_refused():
    config = FNetConfig(vocab_size=30, hidden_size=12, num_hidden_layers=2, intermediate_size=8)
    config.num_attention_heads = 2
    model = MaskedLanguageModel(FNetForMaskedLM(config), limit=10, prefix=1, suffix=1)
    with pytest.raises(StoreError, match="queries and keys"):
        model(batch(5), attention=(1,))


@pytest.mark.parametrize(
    "model",
    [ModernBertForMaskedLM(ModernBertConfig(**BERT)), RoFormerForMaskedLM(RoFormerConfig(**BERT))],
    ids=["modernbert", "roformer"],
)
def test_encoders_that_turn_queries_and_keys_have_no_scores_that_could_be_compared(model):
    rotary_encoder = MaskedLanguageModel(model, limit=10, prefix=1, suffix=1)
    with pytest.raises(StoreError, match="by position"):
        rotary_encoder(batch(5), attention=(1,))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_head_of_its_own_cannot_be_pruned(kind):
    model = encoder(kind)
    model.model.set_output_embeddings(torch.nn.Linear(12, 30))
    with pytest.raises(StoreError, match=r"not its transposed embedding.*set vocabulary: whole"):
        model.prune_embedding((0, 1, 2, 5))


def test_rows_behind_the_vocabulary_are_no_pieces():
    torch.manual_seed(0)
    model = MaskedLanguageModel(KINDS["bert"](), limit=10, prefix=1, suffix=1, pieces=26).eval()
    with torch.inference_mode():
        whole, cut = (network(batch(5)).distribution.emissions_BTY for network in (encoder(), model))
    assert torch.equal(cut, whole[..., :26])
    assert model.architecture()["pieces"] == 26


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_kept_rows_score_as_they_did_in_the_whole(kind):
    model, kept_pieces = encoder(kind), (0, 1, 2, 5, 7, 11)
    whole = batch(5, 3)
    places = torch.randint(
        2, len(kept_pieces), whole.pieces_BP.shape, generator=torch.Generator().manual_seed(1)
    )
    inside_BP = torch.arange(5) < whole.piece_lengths_B[:, None]
    old = torch.where(inside_BP, torch.tensor(kept_pieces)[places], 1)
    new = torch.where(inside_BP, places, 1)
    parts = (whole.piece_lengths_B, whole.first_BT, whole.lengths_B)
    with torch.inference_mode():
        before = model(TokenBatch(old, *parts)).distribution.emissions_BTY[:, :, torch.tensor(kept_pieces)]
        model.prune_embedding(kept_pieces)
        after = model(TokenBatch(new, *parts)).distribution.emissions_BTY
    torch.testing.assert_close(before, after)
    reloaded = type(model)(type(model.model)(model.model.config), limit=10, prefix=1, suffix=1)
    reloaded.load_state_dict(model.state_dict())
    with torch.inference_mode():
        torch.testing.assert_close(reloaded.eval()(TokenBatch(new, *parts)).distribution.emissions_BTY, after)
    assert model.embedding_matrix() is model.model.get_output_embeddings().weight
