"""The architectures of sentiment systems, each declared once: what a system's file may say, and where it lives."""

from fairness_pipeline.models.architecture import Architecture

ARCHITECTURES = {
    "vader": Architecture("vader", libraries=("vaderSentiment",)),
    "linear_svm": Architecture("linear_svm", "svm", trained=True, libraries=("scikit-learn", "numpy")),
    "cnn": Architecture("encoders", "encoder", trained=True, libraries=("torch",)),
    "gru": Architecture("encoders", "encoder", trained=True, libraries=("torch",)),
    "huggingface": Architecture("classifier", "huggingface", needed=True, libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", "endpoint", needed=True),
    "scores": Architecture(""),
}
