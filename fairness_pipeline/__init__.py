"""Audits chatbots, language models and sentiment systems for social bias: published studies as one Dagster pipeline.

In a notebook: `import fairness_pipeline as fp`, then `fp.swap`, `fp.pairs`, `fp.score`, `fp.compare`, `fp.audit`; what
they refuse is an `fp.FairnessError`.
"""

from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError

if TYPE_CHECKING:
    from fairness_pipeline.api import audit, compare, pairs, score, swap

__version__ = "0.1.0"
__all__ = ["FairnessError", "__version__", "audit", "compare", "pairs", "score", "swap"]


def __getattr__(name: str) -> Any:
    """The public face, loaded when it is first used: the command and Dagster need none of it."""
    if name in __all__:
        from fairness_pipeline import api

        return getattr(api, name)
    raise AttributeError(f"module 'fairness_pipeline' has no attribute '{name}'")
