"""Audits chatbots, language models and sentiment systems for social bias: published studies as one Dagster pipeline.

In a notebook: `import fairness_pipeline as fp`, then `fp.swap`, `fp.pairs`, `fp.score`, `fp.compare`, `fp.audit`; what
they refuse is an `fp.FairnessError`. In a Dagster project of your own: `build_definitions`, `LakeIOManager`,
`FairnessProfileComponent`.
"""

from typing import TYPE_CHECKING, Any

from fairness_pipeline.foundation.errors import FairnessError

if TYPE_CHECKING:
    from fairness_pipeline.api import audit, compare, pairs, score, swap
    from fairness_pipeline.definitions import FairnessProfileComponent, LakeIOManager, build_definitions

__version__ = "0.2.0"
__all__ = [
    "FairnessError", "FairnessProfileComponent", "LakeIOManager", "__version__", "audit", "build_definitions",
    "compare", "pairs", "score", "swap",
]  # fmt: skip
_OF_DAGSTER = ("FairnessProfileComponent", "LakeIOManager", "build_definitions")


def __getattr__(name: str) -> Any:
    """The public face, loaded when it is first used: the command needs none of it."""
    if name in _OF_DAGSTER:
        from fairness_pipeline import definitions

        return getattr(definitions, name)
    if name in __all__:
        from fairness_pipeline import api

        return getattr(api, name)
    raise AttributeError(f"module 'fairness_pipeline' has no attribute '{name}'")
