"""A Hugging Face sequence classifier or regressor, by id or folder."""

from collections.abc import Iterator
from typing import Any

from fairness_pipeline.models.pretrained import load_model, load_tokenizer, longest_of

_BATCH = 64


class TextClassifier:
    """Gives the outputs of a sequence classifier or regressor for texts.

    Attributes:
        labels: The column of each label, with labels in lower case.
        regression: Whether the outputs are plain numbers instead of probabilities.

    Raises:
        FairnessError: the model cannot be loaded, or weights are missing.
    """

    def __init__(self, name: str, revision: str | None, device: str, field: str) -> None:
        from transformers import AutoModelForSequenceClassification

        from fairness_pipeline.models.devices import to_device

        _, self._tokenizer = load_tokenizer(name, revision, field)
        model = load_model(AutoModelForSequenceClassification, name, revision, field)
        self._model = to_device(model, device).eval()
        if self._model.config.pad_token_id is None:  # some models read the last token that is not padding
            self._model.config.pad_token_id = self._tokenizer.pad_token_id
        self._longest = longest_of(self._model, self._tokenizer)
        self.labels = {str(label).lower(): int(index) for index, label in self._model.config.id2label.items()}
        kind = self._model.config.problem_type
        self._independent = kind == "multi_label_classification"
        self.regression = kind == "regression" or (len(self.labels) == 1 and not self._independent)

    def logits(self, texts: list[str], batch: int | None = None) -> Iterator[Any]:
        """Yields the outputs (texts, labels) of `batch` texts at a time, in double precision; by default as many as the
        device takes."""
        import torch

        from fairness_pipeline.models.devices import in_batches, roomy

        def logits_of(start: int, end: int) -> Any:
            encoded = self._tokenizer(
                texts[start:end], padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
            )
            with torch.inference_mode():
                return self._model(**encoded.to(self._model.device)).logits.double()

        yield from in_batches(logits_of, len(texts), batch or roomy(_BATCH, self._model.device), self._model)

    def probabilities(self, texts: list[str], batch: int | None = None) -> Iterator[Any]:
        """The label probabilities of a classifier, in the form of `logits`."""
        for logits in self.logits(texts, batch):
            yield logits.sigmoid() if self._independent else logits.softmax(dim=-1)
