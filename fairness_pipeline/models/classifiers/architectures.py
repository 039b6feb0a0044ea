"""The architectures of text classifiers, each declared once: what a classifier's file may say, and where it lives."""

from typing import NamedTuple


class Architecture(NamedTuple):
    """One architecture.

    Args:
        module: Of this folder; has `scorer`, or `network` if it is trained. Empty for a file of predictions.
        section: Of a classifier's file, if it has one of its own.
        needed: Whether that section must be there; what it holds has defaults otherwise.
        trained: Whether it is trained here.
        libraries: Whose versions decide its predictions.
    """

    module: str
    section: str | None = None
    needed: bool = False
    trained: bool = False
    libraries: tuple[str, ...] = ()


ARCHITECTURES = {
    "cnn": Architecture("words", "network", trained=True, libraries=("torch",)),
    "rnn": Architecture("words", "network", trained=True, libraries=("torch",)),
    "encoder": Architecture("encoder", "encoder", needed=True, trained=True, libraries=("torch", "transformers")),
    "huggingface": Architecture("published", "huggingface", needed=True, libraries=("torch", "transformers")),
    "endpoint": Architecture("endpoint", "endpoint", needed=True),
    "predictions": Architecture(""),
}
