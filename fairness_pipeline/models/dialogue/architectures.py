"""The architectures of dialogue models: which sections a model's file needs, and which module holds the code."""

from typing import NamedTuple


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: The module in this folder, with `prepare` and `responder`. It is empty if the answers come from a file.
        needs: The sections that a model's file must have.
        may_have: Other sections that it may have.
        libraries: The libraries that influence its answers; their versions are recorded.
        greedy: Whether it takes a batch size instead of decoding settings.
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
    # A causal LM is fine-tuned if its file has a `training` section.
    "causal_lm": Architecture("huggingface", frozenset({"huggingface"}), _TRAINED, ("numpy", "torch", "transformers")),
    "encoder_decoder": Architecture("huggingface", frozenset({"huggingface"}), libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", frozenset({"endpoint"})),
    "imported": Architecture("imported"),
}
