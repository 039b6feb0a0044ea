"""The architectures of sentiment systems: what a system's file may contain, and which module holds the code."""

from fairness_pipeline.models.architecture import Architecture

ARCHITECTURES = {
    "vader": Architecture("vader", libraries=("vaderSentiment",)),
    "linear_svm": Architecture("linear_svm", may_have=("svm",), trained=True, libraries=("scikit-learn", "numpy")),
    "cnn": Architecture("encoders", may_have=("encoder",), trained=True, libraries=("torch",)),
    "gru": Architecture("encoders", may_have=("encoder",), trained=True, libraries=("torch",)),
    "huggingface": Architecture("classifier", ("huggingface",), libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", ("endpoint",)),
    "scores": Architecture(""),
}
