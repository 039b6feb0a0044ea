"""An offence classifier, trained on labelled texts of a profile: a linear model on words and letter groups."""

from typing import Any

import numpy as np

from fairness_pipeline.corpora.labelled_texts import LabelledText
from fairness_pipeline.foundation.errors import FairnessError


class TrainedClassifier:
    """A logistic regression on tf-idf of words, word pairs, and groups of three to five letters.

    Args:
        texts: Labelled texts. Those that are not held out train the classifier.

    Raises:
        FairnessError: the training texts are too few, all offensive, or none offensive.
    """

    def __init__(self, texts: list[LabelledText]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline, make_union

        training = [text for text in texts if not text.held_out]
        labels = np.array([text.offensive for text in training], dtype=bool)
        if labels.all() or not labels.any():
            raise FairnessError("measures.labelled: expected offensive texts and others to train a classifier on")
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=3, sublinear_tf=True),
        )
        # Offensive texts are rarer than others. Without weights the model would miss most of them.
        self._model = make_pipeline(features, LogisticRegression(C=4.0, max_iter=1000, class_weight="balanced"))
        try:
            self._model.fit([text.text for text in training], labels)
        except ValueError as error:
            raise FairnessError(
                f"measures.labelled: {len(training)} texts are too few to train a classifier on ({error}); name larger "
                "files"
            ) from None

    def __call__(self, texts: list[str]) -> np.ndarray:
        """The probability that each text is offensive."""
        probabilities: Any = self._model.predict_proba(texts)
        return np.asarray(probabilities[:, 1])
