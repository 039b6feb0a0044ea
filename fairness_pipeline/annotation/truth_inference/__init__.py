"""Infers the true label of each item from the labels of many annotators: one method per file, with crowd-kit's
interface.

`fit` and `fit_predict` take a table with `task`, `worker` and `label` (0 or 1, or from 0 with `classes=`). Attributes
with results end in an underscore.
"""

from fairness_pipeline.annotation.truth_inference.catd import CATD
from fairness_pipeline.annotation.truth_inference.dawid_skene import DawidSkene
from fairness_pipeline.annotation.truth_inference.glad import GLAD
from fairness_pipeline.annotation.truth_inference.group_anno import GroupAnno
from fairness_pipeline.annotation.truth_inference.group_beta import GroupBeta
from fairness_pipeline.annotation.truth_inference.kos import KOS
from fairness_pipeline.annotation.truth_inference.lfc_binary import LFCBinary
from fairness_pipeline.annotation.truth_inference.mace import MACE
from fairness_pipeline.annotation.truth_inference.majority_vote import MajorityVote
from fairness_pipeline.annotation.truth_inference.minimax import Minimax
from fairness_pipeline.annotation.truth_inference.pm_crh import PMCRH
from fairness_pipeline.annotation.truth_inference.soft_labels import SoftLabels
from fairness_pipeline.annotation.truth_inference.vi_mf import VIMF
from fairness_pipeline.annotation.truth_inference.zen_crowd import ZenCrowd

__all__ = [
    "CATD",
    "GLAD",
    "KOS",
    "MACE",
    "PMCRH",
    "VIMF",
    "DawidSkene",
    "GroupAnno",
    "GroupBeta",
    "LFCBinary",
    "MajorityVote",
    "Minimax",
    "SoftLabels",
    "ZenCrowd",
]
