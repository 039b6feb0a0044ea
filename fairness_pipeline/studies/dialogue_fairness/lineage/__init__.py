"""Study 1: does a dialogue model answer differently when only the group named in the context changes?

"Does Gender Matter? Towards Fairness in Dialogue Systems" (Liu et al. 2020) and chapters 2 and 3 of Liu 2022. The
lineage, a module a stage, from top to bottom: corpora, pairs of contexts, the instruments by themselves, models (plain
and debiased), answers, measures, verdicts, what debiasing changed, the report.
"""

from fairness_pipeline.lineage.assets import declared_in
from fairness_pipeline.studies.dialogue_fairness.lineage import (
    answers,
    corpora,
    effects,
    instruments,
    measures,
    models,
    pairs,
    report,
    verdicts,
)

LINEAGE = declared_in(corpora, pairs, instruments, models, answers, measures, verdicts, effects, report)
