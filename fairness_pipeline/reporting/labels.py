"""What a reader sees instead of a column's name."""

MEASURES = {
    "diversity": "Diversity",
    "distinct_1": "Distinct-1",
    "distinct_2": "Distinct-2",
    "offense_rate": "Offence rate",
    "sentiment_positive": "Positive",
    "sentiment_negative": "Negative",
}
"""What a reader sees for a measure; attribute lists are named after themselves."""

GLANCE = ("diversity", "offense_rate", "sentiment_positive", "sentiment_negative")
"""The measures of an overview, before the attribute lists."""


def measure_label(measure: str) -> str:
    """The measure's name for a reader."""
    return MEASURES.get(measure, measure.replace("_", " ").capitalize())
