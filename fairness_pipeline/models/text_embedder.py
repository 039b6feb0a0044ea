"""A Hugging Face encoder that turns texts into vectors, by id or folder."""

import numpy as np
import pyarrow as pa

from fairness_pipeline.models.pretrained import load_model, load_tokenizer, longest_of

_BATCH = 64


class TextEmbedder:
    """Embeds a text as the mean of its tokens' last-layer vectors, scaled to length one (Reimers and Gurevych 2019,
    mean pooling).

    Raises:
        FairnessError: the model cannot be loaded, or weights are missing.
    """

    def __init__(self, name: str, revision: str | None, field: str, device: str = "auto") -> None:
        from transformers import AutoModel

        from fairness_pipeline.models.devices import to_device

        _, self._tokenizer = load_tokenizer(name, revision, field)
        self._model = to_device(load_model(AutoModel, name, revision, field), device).eval()
        self._longest = longest_of(self._model, self._tokenizer)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """Column `vector`, a list of numbers for each text of the column `text`."""
        import torch

        from fairness_pipeline.models.devices import in_batches, roomy

        sentences = texts["text"].to_pylist()

        def vectors_of(start: int, end: int) -> np.ndarray:
            encoded = self._tokenizer(
                sentences[start:end], padding=True, truncation=True, max_length=self._longest, return_tensors="pt"
            ).to(self._model.device)
            with torch.inference_mode():
                states = self._model(**encoded).last_hidden_state
                mask = encoded["attention_mask"][..., None].to(states.dtype)
                mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
                unit_vectors: np.ndarray = torch.nn.functional.normalize(mean, dim=-1).double().cpu().numpy()
            return unit_vectors

        parts = list(in_batches(vectors_of, len(sentences), roomy(_BATCH, self._model.device), self._model))
        vectors = np.concatenate(parts) if parts else np.empty((0, 1))
        return pa.table({"vector": pa.array(list(vectors), pa.list_(pa.float64()))})
