"""The architectures of dialogue models, each declared once: what a model's file needs, and where it lives."""

from typing import NamedTuple


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: Of this folder; has `prepare` and `responder`. Empty for one whose answers come from a file.
        needs: Sections that a model's file must have.
        may_have: Sections that it may have besides.
        libraries: Whose versions decide what it answers.
        greedy: Whether it takes no decoding but a batch.
    """

    module: str
    needs: frozenset[str] = frozenset()
    may_have: frozenset[str] = frozenset()
    libraries: tuple[str, ...] = ()
    greedy: bool = False


SECTIONS = ("seq2seq", "retrieval", "training", "huggingface", "endpoint")
"""The sections of a model's file that belong to architectures."""

_TRAINED = frozenset({"training"})

ARCHITECTURES = {
    "seq2seq": Architecture("seq2seq", _TRAINED | {"seq2seq"}, libraries=("numpy", "torch"), greedy=True),
    "retrieval": Architecture("retrieval", _TRAINED | {"retrieval"}, libraries=("numpy", "torch"), greedy=True),
    # A causal LM is fine-tuned where its file says how.
    "causal_lm": Architecture("huggingface", frozenset({"huggingface"}), _TRAINED, ("numpy", "torch", "transformers")),
    "encoder_decoder": Architecture("huggingface", frozenset({"huggingface"}), libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", frozenset({"endpoint"})),
    "imported": Architecture("imported"),
}
