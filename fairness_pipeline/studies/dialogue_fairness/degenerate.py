"""Whether a model says enough for its verdicts to mean anything."""

import math
from collections.abc import Mapping
from typing import Any

from fairness_pipeline.foundation.plain_text import visible

Figures = Mapping[str, Any]


def degenerate(
    answered: Figures, most: float, trained: Figures | None = None, base: Figures | None = None
) -> str | None:
    """Why verdicts on a model mean nothing: it gives nearly everything the same answer, was never trained, or learned
    nothing; None if they mean something.

    Args:
        answered: The figures of its responses.
        most: The share of equal answers from which on nothing can be judged.
        trained: The figures of a Seq2Seq's weights. It learned nothing if it predicts words no better than a draw among
            all of its base's would.
        base: The figures of the weights that it was made from; its own if it was made from none.
    """
    if answered.get("commonest_share", 0.0) >= most:
        share, answer = 100 * answered["commonest_share"], answered["commonest_response"]
        return f"{share:.3g}% of its answers are {visible(answer)!r}" if answer else f"{share:.3g}% are empty"
    if answered.get("guesses"):
        return "its weights predict plain English no better than guessing; was it trained?"
    if trained and base and trained.get("validation_perplexity", 0.0) >= base.get("vocabulary", math.inf):
        return "it predicts held-out dialogues no better than guessing; try a lower learning rate"
    return None
