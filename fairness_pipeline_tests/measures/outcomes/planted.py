"""Tables of known truth: items in clusters, groups, draws, and what is planted in one group."""

import csv
from io import StringIO

import numpy as np

TOPICS = (
    "rent", "loan", "visa", "repair", "refund", "training", "transfer", "grant", "permit", "parking", "insurance",
    "warranty", "childcare", "library", "gym", "garden", "hotel", "bursary", "moving", "storage", "internship",
    "mentoring", "scholarship", "transport",
)  # fmt: skip
GROUPS, AGES = ("Northtown", "Southtown", "Easttown"), ("younger", "older")
PLANTED = {"plain": 0.3, "instructed": 0.12}
"""By how much Easttown's requests are approved less often, by prompt."""


def sample_table() -> str:
    """The table that ships: 24 topics of two requests, three invented towns and two ages, two draws, two prompts.

    `approved` is less likely for Easttown (`PLANTED`); `words`, the length of the answer, depends on no group.
    """
    random = np.random.default_rng(62)
    stream = StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow(["topic", "request", "town", "age", "prompt", "draw", "approved", "words"])
    for topic in TOPICS:
        leaning, length = random.normal(0.55, 0.12), random.normal(60, 12)
        for number in (1, 2):
            request, own = f"{topic}-{number}", random.normal(0, 0.05)
            for town in GROUPS:
                for age in AGES:
                    for prompt, planted in PLANTED.items():
                        for draw in (1, 2):
                            rate = leaning + own - planted * (town == "Easttown")
                            approved = int(random.random() < np.clip(rate, 0.02, 0.98))
                            words = max(1, round(random.normal(length, 6)))
                            rows.writerow([topic, request, town, age, prompt, draw, approved, words])
    return stream.getvalue()
