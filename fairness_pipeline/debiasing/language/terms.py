"""Where the terms of a dimension stand in a phrase's tokens, and their vectors in the output layer."""

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

    Args:
        tokenizer: The model's.
        lexicon: The dimension's terms.
    """

    def __init__(self, tokenizer: Any, lexicon: Lexicon) -> None:
        self._tokenizer = tokenizer
        self._lexicon = lexicon
        self._terms = list(dict.fromkeys(term.lower() for pair in lexicon.pairs for term in pair))
        number = {term: place for place, term in enumerate(self._terms)}
        self.pairs = torch.tensor([[number[a.lower()], number[b.lower()]] for a, b in lexicon.pairs])
        """(pairs, 2): the rows of side a and side b."""
        self._tokens = [_pieces(tokenizer, term) for term in self._terms]

    def vectors(self, model: Any) -> torch.Tensor:
        """(terms, width): each term's vector, with gradients."""
        weights = model.get_output_embeddings().weight
        return torch.stack([weights[tokens].mean(0) for tokens in self._tokens])

    def places(self, texts: Sequence[str], longest: int | None) -> list[Places]:
        """Each phrase's tokens and where its terms stand.

        Args:
            texts: The phrases.
            longest: Tokens at most.
        """
        options = {"truncation": True, "max_length": longest} if longest else {}
        encoded = self._tokenizer(list(texts), return_offsets_mapping=True, **options)
        number = {term: place for place, term in enumerate(self._terms)}
        rows = self.pairs.tolist()
        found = []
        for text, tokens, offsets in zip(texts, encoded["input_ids"], encoded["offset_mapping"], strict=True):
            targets = []
            for match in self._lexicon.term_spans(text):
                span = _tokens_of(offsets, match.start, match.end)
                term = number.get(match.term, number.get(match.term.removesuffix("s")))
                own = [place for place, pair in enumerate(rows) if term in pair]
                if span and own:
                    targets.append((span[0], own))
            spans = [_tokens_of(offsets, *span) for span in self._lexicon.attribute_spans(text)]
            found.append(Places(tokens, targets, [span for span in spans if span]))
        return found


def _pieces(tokenizer: Any, term: str) -> list[int]:
    """The tokens of a term inside a sentence. A blank piece before it is none of them (the tokenizer of Llama 2 makes
    `▁`, `▁jews` of ` jews`): it stands before every word."""
    text = f" {term}"
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    pieces = zip(found["input_ids"], found["offset_mapping"], strict=True)
    return [token for token, (low, high) in pieces if text[low:high].strip()] or found["input_ids"]


def _tokens_of(offsets: Sequence[tuple[int, int]], start: int, end: int) -> tuple[int, int] | None:
    """The tokens that a stretch of the text falls into: first, and one after the last."""
    inside = [place for place, (low, high) in enumerate(offsets) if high > low and low < end and high > start]
    return (inside[0], inside[-1] + 1) if inside else None
