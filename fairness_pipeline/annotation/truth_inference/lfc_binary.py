"""LFC-binary: the truth, sensitivities and specificities, and a prevalence, with priors (Raykar et al. 2010).

It is Dawid-Skene for two classes, with Beta priors on sensitivities, specificities and prevalence. The priors keep
annotators with few labels from extreme estimates: alpha_r = (a - 1 + sum mu z) / (a + b - 2 + sum mu).
"""

import numpy as np

from fairness_pipeline.annotation.truth_inference.base import (
    EPSILON,
    Classifier,
    Labels,
    TruthInference,
    converged,
    two_coin_posterior,
)


class LFCBinary(TruthInference):
    """Binary Dawid-Skene with Beta priors. Without a classifier all items share one prevalence as their prior.

    Args:
        classifier: A classifier of the items. `loss_history_` may then rise, because the classifier's own loss is not
            part of it.
        n_iter: The maximum number of iterations.
        tol: The iterations end when the mean log-posterior of an item grows by less.
        prior: Beta(a, b) of sensitivity and specificity.
        prevalence: Beta(a, b) of P(y = 1).

    Attributes:
        sensitivity_: P(z = 1 | y = 1) of each worker.
        specificity_: P(z = 0 | y = 0) of each worker.
        prior_: P(y = 1) of each task.

    Examples:
        >>> import pandas as pd
        >>> rows = [(t, w, int(t > 2) if w < "c" else 0) for t in range(6) for w in "abcd"]
        >>> data = pd.DataFrame(rows, columns=["task", "worker", "label"])
        >>> LFCBinary().fit_predict(data).tolist()
        [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        n_iter: int = 100,
        tol: float = 1e-6,
        *,
        classifier: Classifier | None = None,
        prior: tuple[float, float] = (2.0, 1.5),
        prevalence: tuple[float, float] = (2.0, 2.0),
    ) -> None:
        self.classifier = classifier
        self.n_iter = n_iter
        self.tol = tol
        self.prior = prior
        self.prevalence = prevalence

    def _infer(self, labels: Labels) -> np.ndarray:
        import pandas as pd

        probas = labels.positive_shares()
        a, b = self.prior
        p, q = self.prevalence
        for _ in range(self.n_iter):
            hits, misses, false_alarms, rejections = labels.counts(probas)
            alpha = (a - 1 + hits) / (a + b - 2 + hits + misses)
            beta = (a - 1 + rejections) / (a + b - 2 + false_alarms + rejections)
            prevalence: float | np.ndarray
            if self.classifier is not None:
                prevalence = np.clip(self.classifier(probas), EPSILON, 1 - EPSILON)
            else:
                prevalence = (p - 1 + float(probas.sum())) / (p + q - 2 + len(probas))
            probas, likelihood = two_coin_posterior(labels, alpha, beta, prevalence)
            penalty = sum(((a - 1) * np.log(v) + (b - 1) * np.log1p(-v)).sum() for v in (alpha, beta))
            if self.classifier is None:
                penalty += float((p - 1) * np.log(prevalence) + (q - 1) * np.log1p(-prevalence))
            self.loss_history_.append(-float(likelihood.sum() + penalty) / len(probas))
            if converged(self.loss_history_, self.tol):
                break
        self.sensitivity_, self.specificity_ = (pd.Series(rates, index=labels.annotators) for rates in (alpha, beta))
        self.prior_ = pd.Series(np.broadcast_to(prevalence, len(probas)), index=labels.items.rename("task"))
        return probas
