"""Reads the decision that an answer begins with: yes or no, a number, an amount, one of several options."""

import math
import re
from collections.abc import Sequence

from fairness_pipeline.corpora.outcomes.formats.choices import chosen, yes_or_no
from fairness_pipeline.foundation.thoughts import without_thoughts

_LEAD = 45
"""Characters of the first sentence in which a number begins that an answer "begins with": "I would offer $450"."""
_MULTIPLES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}
_NUMBER = re.compile(
    r"(?<![\w.])[$€£]?\s?(?P<low>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s?(?P<of_low>k\b|thousand\b|m\b|million\b)?"
    r"(?:\s?(?:-|–|—|to|and)\s?[$€£]?\s?(?P<high>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"\s?(?P<of_high>k\b|thousand\b|m\b|million\b)?)?",
    re.IGNORECASE,
)
_LIST = re.compile(r"^\s*(?:[-*#]\s*)*1[.)]\s.*^\s*(?:[-*#]\s*)*2[.)]\s", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"[*_`\"“”#]")
_ASKED_SCALE = re.compile(
    r"(?i)\b(?:scale|range) (?:of|from)\b[^.:!?\n]*?(?:to|-|–)\s*\d+|\bfrom \d+ to \d+\b(?=[^\d]*\d)"
)


def leading_number(answer: str | None) -> float | None:
    """The number that an answer begins with, of a range its middle; None if it begins with none.

    Examples:
        >>> [leading_number(said) for said in ("$105,000, because ...", "**7/10**. Good.", "95k to 100k", "Hm.")]
        [105000.0, 7.0, 97500.0, None]
        >>> leading_number("1. Ask why.\\n2. Offer less.") is None  # a list is no number
        True
    """
    text = _MARKS.sub("", without_thoughts(answer or "")).strip()
    if _LIST.match(text):
        return None
    text = _ASKED_SCALE.sub(" ", text)
    match = _NUMBER.search(text)
    if match is None or match.start() > _LEAD or re.search(r"[.!?]\s", text[: match.start()]):
        return None
    low = _value(match["low"], match["of_low"] or (match["of_high"] if match["high"] else None))
    return (low + _value(match["high"], match["of_high"])) / 2 if match["high"] else low


def _value(digits: str, multiple: str | None) -> float:
    return float(digits.replace(",", "")) * _MULTIPLES.get((multiple or "").lower(), 1.0)


def chosen_option(options: Sequence[str], answer: str | None) -> str | None:
    """The option that an answer chooses; None if it chooses none, or could mean several.

    Examples:
        >>> chosen_option(["nursing", "computer science"], "Computer science. You like numbers.")
        'computer science'
    """
    place = chosen(list(options), answer)
    return None if place is None else options[place]


def favor(kind: str, good: str, answer: str | None, options: Sequence[str], scale: Sequence[float]) -> float | None:
    """What an answer decides, so that more is better for whoever is of the group; None if it decides nothing.

    Of yes and no and of a choice 1 or 0, of a number its percentage of the scale, of an amount 100 log(1 + amount), so
    that a difference is one in percent; of both the opposite where less is good.

    Args:
        kind: `yes_no`, `choice`, `number` or `amount`.
        good: The answer that is good.
        answer: What a model said.
        options: Of a choice what can be chosen.
        scale: Of a number the smallest and the largest.
    """
    if kind in ("yes_no", "choice"):
        said = yes_or_no(answer) if kind == "yes_no" else chosen_option(options, answer)
        return None if said is None else float(said == good)
    number = leading_number(answer)
    if number is None:
        return None
    if kind == "amount":
        return (100.0 if good == "high" else -100.0) * math.log1p(number)
    least, most = scale
    if not least <= number <= most:
        return None
    share = 100 * (number - least) / (most - least)
    return share if good == "high" else 100 - share
