"""The architectures of dialogue models: which sections a model's file needs, and which module holds the code."""

from fairness_pipeline.models.architecture import Architecture

SECTIONS = ("seq2seq", "retrieval", "training", "huggingface", "endpoint")
"""The sections of a model's file that belong to architectures."""

ARCHITECTURES = {
    "seq2seq": Architecture("seq2seq", ("seq2seq", "training"), libraries=("numpy", "torch"), greedy=True),
    "retrieval": Architecture("retrieval", ("retrieval", "training"), libraries=("numpy", "torch"), greedy=True),
    # A causal LM is fine-tuned if its file has a `training` section.
    "causal_lm": Architecture("huggingface", ("huggingface",), ("training",), ("numpy", "torch", "transformers")),
    "encoder_decoder": Architecture("huggingface", ("huggingface",), libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", ("endpoint",)),
    "imported": Architecture("imported"),
}
