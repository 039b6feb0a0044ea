"""Masked language models: each token guessed from all the others, one query at a time beside batches."""

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
    """A small BERT."""
    folder = tmp_path_factory.mktemp("bert")
    own = LanguageModelSpecification.model_validate(
        {"architecture": "masked_lm", "huggingface": {"name": masked_lm(folder / "model")}}
    )
    figures = registry.prepare(own, [], folder, 1)
    assert figures["model_type"] == "bert"
    return registry.load(own, folder)


def guessed(model: Any, tokenizer: Any, text: str, places: list[int]) -> float:
    """The summed log-probability of the tokens at some places, each masked alone."""
    tokens = tokenizer(text)["input_ids"]
    found = 0.0
    for place in places:
        hidden = torch.tensor([tokens])
        hidden[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            found += model(hidden).logits[0, place].log_softmax(-1)[tokens[place]].item()
    return found


def test_batches_give_what_one_token_at_a_time_gives(loaded: tuple[Any, Any]) -> None:
    model, tokenizer = loaded
    texts = ["he was late.", "she was late.", "the nurse said that she was late", "a"]
    scored = PseudoPerplexityScorer(model, tokenizer)(pa.table({"text": texts}))
    for text, found, count in zip(texts, *(scored[name].to_pylist() for name in ("perplexity", "tokens")), strict=True):
        own = len(tokenizer(text)["input_ids"]) - 2  # without the marks at both ends
        assert count == own
        assert found == pytest.approx(math.exp(-guessed(model, tokenizer, text, [*range(1, own + 1)]) / own), rel=1e-4)


def test_of_a_pair_what_differs_is_given(loaded: tuple[Any, Any]) -> None:
    """Nangia et al. 2020, section 3.1: `he` and `she` are no part of the sum, and the other tokens are."""
    model, tokenizer = loaded
    pairs = [("he was late.", "she was late."), ("she was late.", "he was late.")]
    texts = [BESIDE.join(pair) for pair in pairs]
    scored = PseudoPerplexityScorer(model, tokenizer)(pa.table({"text": texts}))
    assert scored["tokens"].to_pylist() == [3, 3]  # was, late and the full stop
    expected = [math.exp(-guessed(model, tokenizer, first, [2, 3, 4]) / 3) for first, _ in pairs]
    assert scored["perplexity"].to_pylist() == pytest.approx(expected, rel=1e-4)


def test_what_cannot_be_guessed_is_refused(loaded: tuple[Any, Any]) -> None:
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
