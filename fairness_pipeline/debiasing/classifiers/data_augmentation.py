"""Data Aug: more texts, until labels are 1:1 in both groups (Liu 2022, section 4.5.2; Dixon et al. 2018).

A reference: it is given texts that the other methods do not have.
"""

from fairness_pipeline.debiasing.classifiers.registry import Task, Texts


def prepared(task: Task) -> Texts:
    """The training set together with the texts that balance it."""
    return task.train.and_these(task.added)
