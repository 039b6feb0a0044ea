"""Finds the terms of a dimension in a phrase's tokens, and their vectors in the output layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fairness_pipeline.lexicons.stereotypes import Lexicon


@dataclass(frozen=True)
class Places:
    """A phrase's tokens; (first token, rows of the pairs it is in) of each target; (first, end) of each attribute.

    A target that begins the phrase is predicted from nothing: its first token is 0.
    """

    input_ids: list[int]
    targets: list[tuple[int, list[int]]]
    attributes: list[tuple[int, int]]


class TermVectors:
    """The pairs of target terms as rows of the output layer.

    A term of several tokens is the mean of their vectors (footnote 12).
    """

    def __init__(self, tokenizer: Any, lexicon: Lexicon) -> None:
        self._tokenizer = tokenizer
        self._lexicon = lexicon
        self._terms = list(dict.fromkeys(term.lower() for pair in lexicon.pairs for term in pair))
        row_of = {term: row for row, term in enumerate(self._terms)}
        self.pairs = torch.tensor([[row_of[a.lower()], row_of[b.lower()]] for a, b in lexicon.pairs])
        """(pairs, 2): the rows of side a and side b."""
        self._tokens = [_pieces(tokenizer, term) for term in self._terms]

    def vectors(self, model: Any) -> torch.Tensor:
        """(terms, width): each term's vector, with gradients."""
        weights = model.get_output_embeddings().weight
        return torch.stack([weights[tokens].mean(0) for tokens in self._tokens])

    def places(self, texts: Sequence[str], longest: int | None) -> list[Places]:
        """Each phrase's tokens, `longest` at most, and the places of its terms."""
        options = {"truncation": True, "max_length": longest} if longest else {}
        encoded = self._tokenizer(list(texts), return_offsets_mapping=True, **options)
        row_of = {term: row for row, term in enumerate(self._terms)}
        rows = self.pairs.tolist()
        located = []
        for text, tokens, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
            targets = []
            for match in self._lexicon.term_spans(text):
                span = _tokens_of(offsets, match.start, match.end)
                term = row_of.get(match.term, row_of.get(match.term.removesuffix("s")))
                pair_rows = [row for row, pair in enumerate(rows) if term in pair]
                if span and pair_rows:
                    targets.append((span[0], pair_rows))
            spans = [_tokens_of(offsets, *span) for span in self._lexicon.attribute_spans(text)]
            located.append(Places(tokens, targets, [span for span in spans if span]))
        return located


def _pieces(tokenizer: Any, term: str) -> list[int]:
    """The tokens of a term inside a sentence. A blank piece before it does not count (the tokenizer of Llama 2 makes
    `▁`, `▁jews` of ` jews`), because it precedes every word."""
    text = f" {term}"
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    pieces = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    return [token for token, (low, high) in pieces if text[low:high].strip()] or encoded["input_ids"]


def _tokens_of(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The tokens that a stretch of the text falls into: first, and one after the last."""
    inside = [index for index, (low, high) in enumerate(offsets) if high > low and low < end and high > start]
    return (inside[0], inside[-1] + 1) if inside else None
