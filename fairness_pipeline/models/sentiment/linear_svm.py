"""Linear support vector regressors on word n-grams, one for each affect: the baseline of SemEval-2018 Task 1."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from safetensors.numpy import load_file, save_file

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.files import replacing
from fairness_pipeline.foundation.progress import Progress, report
from fairness_pipeline.models.sentiment.specification import SvmSettings, SystemSpecification

_WEIGHTS, _WORDS = "model.safetensors", "words.json"


def prepare(
    specification: SystemSpecification, tweets: pa.Table, folder: Path, seed: int, progress: Progress | None = None
) -> dict[str, Any]:
    """Fits one regressor for each affect.

    Raises:
        FairnessError: an affect has no tweets.
    """
    from sklearn.svm import LinearSVR

    settings = specification.svm or SvmSettings()
    weights: dict[str, np.ndarray] = {}
    words: dict[str, list[str]] = {}
    for done, affect in enumerate(specification.affects):
        part = of_affect(tweets, affect)
        vectorizer = _vectorizer(settings)
        features = vectorizer.fit_transform(part["tweet"].to_pylist())
        model = LinearSVR(C=settings.c, random_state=seed, max_iter=20_000).fit(features, part["score"].to_numpy())
        words[affect] = vectorizer.get_feature_names_out().tolist()
        weights[f"{affect}.idf"], weights[f"{affect}.weights"] = vectorizer.idf_, model.coef_
        weights[f"{affect}.intercept"] = np.atleast_1d(model.intercept_)
        report(progress, done + 1, len(specification.affects), affect)
    with replacing(folder / _WORDS) as path:
        path.write_text(json.dumps(words), encoding="utf-8")
    with replacing(folder / _WEIGHTS) as path:
        save_file(weights, path)
    return {"tweets": tweets.num_rows, "features": {affect: len(names) for affect, names in words.items()}}


class SvmScorer:
    """Scores sentences with the fitted regressors; scores are clipped to 0..1."""

    def __init__(self, specification: SystemSpecification, folder: Path) -> None:
        self.specification = specification
        self.folder = folder

    def __call__(self, sentences: pa.Table) -> pa.Table:
        """The scores of each sentence, with one column for each affect."""
        texts = sentences["text"].to_pylist()
        weights = load_file(self.folder / _WEIGHTS)
        scores = {}
        for affect, words in json.loads((self.folder / _WORDS).read_text(encoding="utf-8")).items():
            vectorizer = _vectorizer(self.specification.svm or SvmSettings(), vocabulary=words)
            vectorizer.idf_ = weights[f"{affect}.idf"]
            predicted = vectorizer.transform(texts) @ weights[f"{affect}.weights"] + weights[f"{affect}.intercept"]
            scores[affect] = np.clip(predicted, 0.0, 1.0)
        return pa.table(scores)


def scorer(specification: SystemSpecification, folder: Path, work: Path, seed: int) -> SvmScorer:
    """The scorer of the system that `prepare` made in `folder`."""
    return SvmScorer(specification, folder)


def of_affect(tweets: pa.Table, affect: str) -> pa.Table:
    """The tweets with an intensity of `affect`; raises FairnessError if there are none."""
    part = tweets.filter(pc.equal(tweets["affect"], affect))
    if not part.num_rows:
        known = ", ".join(sorted(tweets["affect"].unique().to_pylist())) or "none"
        raise FairnessError(
            f"no tweets to train on for '{affect}': the files of the profile's equity.tweets hold {known}"
        )
    return part


def _vectorizer(settings: SvmSettings, **options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(ngram_range=(1, settings.longest_ngram), token_pattern=r"\w+", **options)
