"""Audits chatbots, language models and sentiment systems for social bias: published studies as one Dagster pipeline.

In a notebook: `import fairness_pipeline as fp`, then `fp.swap`, `fp.pairs`, `fp.score`, `fp.compare`, `fp.audit`; they
raise `fp.FairnessError`. In your own Dagster project: `build_definitions`, `LakeIOManager`,
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
_DAGSTER_NAMES = ("FairnessProfileComponent", "LakeIOManager", "build_definitions")


def __getattr__(name: str) -> Any:
    """Loads a public name when it is first used; the command needs none of them."""
    if name in _DAGSTER_NAMES:
        from fairness_pipeline import definitions

        return getattr(definitions, name)
    if name in __all__:
        from fairness_pipeline import api

        return getattr(api, name)
    raise AttributeError(f"module 'fairness_pipeline' has no attribute '{name}'")
