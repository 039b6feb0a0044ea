"""The architectures of text classifiers: what a classifier's file may contain, and which module holds the code."""

from fairness_pipeline.models.architecture import Architecture

ARCHITECTURES = {
    "cnn": Architecture("words", may_have=("network",), trained=True, libraries=("torch",)),
    "rnn": Architecture("words", may_have=("network",), trained=True, libraries=("torch",)),
    "encoder": Architecture("encoder", ("encoder",), trained=True, libraries=("torch", "transformers")),
    "huggingface": Architecture("published", ("huggingface",), libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", ("endpoint",)),
    "predictions": Architecture(""),
}
