"""Any OpenAI-compatible chat endpoint as a dialogue model."""

import json
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress
from fairness_pipeline.models.chat import Advice, Asker
from fairness_pipeline.models.dialogue.responding import REPLIES
from fairness_pipeline.models.dialogue.specification import ModelSpecification
from fairness_pipeline.models.specification import given

_SOURCE = "source.json"
_ADVICE = Advice(prompt_name="context", less="pairs.maximum in the profile")


def prepare(
    specification: ModelSpecification, dialogues: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, object]:
    """Records in `folder` which endpoint it is; no request is sent."""
    source = given(specification.endpoint)
    with replacing(folder / _SOURCE) as path:
        path.write_text(json.dumps({"base_url": source.base_url, "model": source.model}), encoding="utf-8")
    return {"endpoint": source.base_url, "model": source.model}


class EndpointResponder(Asker):
    """Answers contexts: a table with a column `text` in, one of `REPLIES` out. Every answer is saved.

    Raises:
        FairnessError: the key is missing from the environment; while answering, as in `Chat.replies`.
    """

    def __init__(self, specification: ModelSpecification, folder: Path, seed: int) -> None:
        super().__init__(given(specification.endpoint), specification.decoding, folder, seed, _ADVICE)

    def __call__(self, contexts: pa.Table) -> pa.Table:
        """The responses, in the order of the rows."""
        prompts = self._prompts(contexts["text"].to_pylist())
        rows = [tuple(reply) for reply in self._chat.replies(prompts)]
        columns = zip(*rows, strict=True) if rows else [()] * len(REPLIES)
        return pa.table([pa.array(column, pa.string()) for column in columns], schema=REPLIES)


def responder(specification: ModelSpecification, folder: Path, work: Path, seed: int) -> EndpointResponder:
    """The responder of the endpoint, with the answers that an earlier run saved in `work`."""
    return EndpointResponder(specification, work, seed)
