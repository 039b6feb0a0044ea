"""Masked language models: each token is predicted from all others, in batches and one query at a time."""

import math
from typing import Any

import pyarrow as pa
import pytest
import torch

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.language import registry
from fairness_pipeline.models.language.pseudo_perplexity import PseudoPerplexityScorer
from fairness_pipeline.models.language.specification import BESIDE, LanguageModelSpecification
from fairness_pipeline_tests.models.tiny_models import masked_lm


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A small BERT and its tokenizer."""
    folder = tmp_path_factory.mktemp("bert")
    specification = LanguageModelSpecification.model_validate(
        {"architecture": "masked_lm", "huggingface": {"name": masked_lm(folder / "model")}}
    )
    figures = registry.prepare(specification, [], folder, 1)
    assert figures["model_type"] == "bert"
    return registry.load(specification, folder)


def log_probability(model: Any, tokenizer: Any, text: str, positions: list[int]) -> float:
    """The summed log-probability of the tokens at some positions, each masked alone."""
    tokens = tokenizer(text)["input_ids"]
    total = 0.0
    for position in positions:
        masked = torch.tensor([tokens])
        masked[0, position] = tokenizer.mask_token_id
        with torch.no_grad():
            total += model(masked).logits[0, position].log_softmax(-1)[tokens[position]].item()
    return total


def test_batches_equal_one_token_at_a_time(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    texts = ["he was late.", "she was late.", "the nurse said that she was late", "a"]
    scored = PseudoPerplexityScorer(model, tokenizer)(pa.table({"text": texts}))
    for text, perplexity, count in zip(
        texts, *(scored[name].to_pylist() for name in ("perplexity", "tokens")), strict=True
    ):
        length = len(tokenizer(text)["input_ids"]) - 2  # without the marks at both ends
        assert count == length
        assert perplexity == pytest.approx(
            math.exp(-log_probability(model, tokenizer, text, [*range(1, length + 1)]) / length), rel=1e-4
        )


def test_words_that_differ_in_a_pair_are_not_scored(loaded: tuple[Any, Any]) -> None:
    """Nangia et al. 2020, section 3.1: `he` and `she` are left out of the sum, and the other tokens are in it."""
    model, tokenizer = loaded
    pairs = [("he was late.", "she was late."), ("she was late.", "he was late.")]
    texts = [BESIDE.join(pair) for pair in pairs]
    scored = PseudoPerplexityScorer(model, tokenizer)(pa.table({"text": texts}))
    assert scored["tokens"].to_pylist() == [3, 3]  # was, late and the full stop
    expected = [math.exp(-log_probability(model, tokenizer, first, [2, 3, 4]) / 3) for first, _ in pairs]
    assert scored["perplexity"].to_pylist() == pytest.approx(expected, rel=1e-4)


def test_texts_that_cannot_be_scored_are_refused(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    scorer = PseudoPerplexityScorer(model, tokenizer)
    with pytest.raises(FairnessError, match="a text has 82 tokens, and the model 64 positions"):
        scorer(pa.table({"text": ["he was " * 40]}))
    with pytest.raises(FairnessError, match="shares no token with 'she'"):
        scorer(pa.table({"text": [f"he{BESIDE}she"]}))
    tokenizer.mask_token, mark = None, tokenizer.mask_token
    try:
        with pytest.raises(FairnessError, match="the tokenizer has no mask token"):
            PseudoPerplexityScorer(model, tokenizer)
    finally:
        tokenizer.mask_token = mark
