"""A chat endpoint that is asked for a text's class, one text a request."""

import re
from pathlib import Path

import pyarrow as pa

from fairness_pipeline.errors import FairnessError
from fairness_pipeline.models.chat import Advice, Chat
from fairness_pipeline.models.classifiers.specification import AskedClassifier, ClassifierSpecification
from fairness_pipeline.models.specification import Decoding

_ANSWER = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
_MAX_TOKENS = 8
_SHOWN = 80
_ADVICE = Advice(what="prompt", empty="; or change endpoint.prompt so that it answers", less="the corpus's 'maximum'")


class AskedClassifierScorer:
    """Yes or no, as a probability of 1 or 0. Every answer is kept, so that a killed run asks only for the rest.

    Args:
        specification: The classifier's file.
        folder: Keeps the answers.
        seed: Sent along with each request.

    Raises:
        FairnessError: when it scores: the endpoint fails, or an answer begins with neither yes nor no.
    """

    CHUNK = 64
    """Texts between two reports of progress."""

    def __init__(self, specification: ClassifierSpecification, folder: Path, seed: int) -> None:
        self.source = _source(specification)
        self._chat = Chat(self.source, Decoding(max_tokens=_MAX_TOKENS), folder, seed, _ADVICE)

    def __call__(self, texts: pa.Table) -> pa.Table:
        """A column `probability`."""
        prompts = [self.source.filled(text) for text in texts["text"].to_pylist()]
        answers = self._chat.answers(prompts)
        found = [_ANSWER.match(answer) for answer in answers]
        wrong = [place for place, match in enumerate(found) if match is None]
        if wrong:
            self._chat.forget([prompts[place] for place in wrong])
            raise FairnessError(
                f"{len(wrong):,} of {len(answers):,} answers begin with neither yes nor no, such as "
                f"{answers[wrong[0]][:_SHOWN]!r} to {prompts[wrong[0]]!r}; they are not kept: change endpoint.prompt, "
                "or run again to ask for them again"
            )
        said = [float(match is not None and match[1].lower() == "yes") for match in found]
        return pa.table({"probability": pa.array(said, pa.float64())})

    def check_allowed(self, texts: list[str]) -> None:
        """Refuses, before anything is asked, what `max_requests` does not allow for all these texts."""
        self._chat.check_allowed([self.source.filled(text) for text in texts])


def scorer(specification: ClassifierSpecification, work: Path, seed: int) -> AskedClassifierScorer:
    """The endpoint, with the answers that an earlier run left in `work`."""
    return AskedClassifierScorer(specification, work, seed)


def _source(specification: ClassifierSpecification) -> AskedClassifier:
    assert specification.endpoint is not None
    return specification.endpoint
