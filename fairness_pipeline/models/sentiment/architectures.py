"""The architectures of sentiment systems, each declared once: what a system's file may say, and where it lives."""

from typing import NamedTuple


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: Of this folder; has `scorer`, and `prepare` if it is trained. Empty for a file of scores.
        section: Of a system's file, if it has one of its own.
        needed: Whether that section must be there; what it holds has defaults otherwise.
        trained: Whether it is trained here, on tweets with affect intensities.
        libraries: Whose versions decide its scores.
    """

    module: str
    section: str | None = None
    needed: bool = False
    trained: bool = False
    libraries: tuple[str, ...] = ()


ARCHITECTURES = {
    "vader": Architecture("vader", libraries=("vaderSentiment",)),
    "linear_svm": Architecture("linear_svm", "svm", trained=True, libraries=("scikit-learn", "numpy")),
    "cnn": Architecture("encoders", "encoder", trained=True, libraries=("torch",)),
    "gru": Architecture("encoders", "encoder", trained=True, libraries=("torch",)),
    "huggingface": Architecture("classifier", "huggingface", needed=True, libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", "endpoint", needed=True),
    "scores": Architecture(""),
}
