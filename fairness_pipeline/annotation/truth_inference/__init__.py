"""Infers the true label of each item from the labels of many annotators: one method per file, with crowd-kit's
interface.

`fit` and `fit_predict` take a table with `task`, `worker` and `label` (0 or 1, or from 0 with `classes=`). Attributes
with results end in an underscore.
"""

from fairness_pipeline.annotation.truth_inference.catd import CATD as CATD
from fairness_pipeline.annotation.truth_inference.dawid_skene import DawidSkene as DawidSkene
from fairness_pipeline.annotation.truth_inference.glad import GLAD as GLAD
from fairness_pipeline.annotation.truth_inference.group_anno import GroupAnno as GroupAnno
from fairness_pipeline.annotation.truth_inference.group_beta import GroupBeta as GroupBeta
from fairness_pipeline.annotation.truth_inference.kos import KOS as KOS
from fairness_pipeline.annotation.truth_inference.lfc_binary import LFCBinary as LFCBinary
from fairness_pipeline.annotation.truth_inference.mace import MACE as MACE
from fairness_pipeline.annotation.truth_inference.majority_vote import MajorityVote as MajorityVote
from fairness_pipeline.annotation.truth_inference.minimax import Minimax as Minimax
from fairness_pipeline.annotation.truth_inference.pm_crh import PMCRH as PMCRH
from fairness_pipeline.annotation.truth_inference.soft_labels import SoftLabels as SoftLabels
from fairness_pipeline.annotation.truth_inference.vi_mf import VIMF as VIMF
from fairness_pipeline.annotation.truth_inference.zen_crowd import ZenCrowd as ZenCrowd
