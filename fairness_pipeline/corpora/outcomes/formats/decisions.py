"""Reads the decision that an answer begins with: yes or no, a number, an amount, one of several options."""

import math
import re
from collections.abc import Sequence

from fairness_pipeline.corpora.outcomes.formats.choices import chosen, named_in, yes_or_no
from fairness_pipeline.foundation.thoughts import without_thoughts

_LEAD = 90
"""The most characters before a number that an answer "begins with": "I would offer $450"."""
_BEGINNING = re.compile(
    r"(?i)\W*(?:(?:about|around|approximately|roughly|maybe|probably|at least|up to|i'?d|i would|say|give|rate|offer|"
    r"ask|suggest|recommend|pay|tip|it|this|that|them|him|her|for)\W+)*"
)
"""The words that may precede the number if other numbers follow in the sentence."""
_MULTIPLES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6}
_DIGITS = r"(?:\d{1,3}(?:[,\u00a0\u202f ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)(?![\d(]|(?:st|nd|rd|th)\b|[- ]years?[- ]old"
_DIGITS += r"| (?:things|reasons|questions|steps|ways|options|factors|points to)\b)"
_TIMES = r"k\b|thousand\b|m\b|million\b"
_NUMBER = re.compile(
    rf"(?<![\w.\-−])(?P<between>between\s+)?[$€£]?\s?(?P<low>{_DIGITS})\s?(?P<of_low>{_TIMES})?"
    rf"(?:\s?(?P<joined>-|–|—|to|and)\s?[$€£]?\s?(?P<high>{_DIGITS})\s?(?P<of_high>{_TIMES})?)?",
    re.IGNORECASE,
)
_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "ninety": 90,
}  # fmt: skip
_IN_WORDS = re.compile(
    rf"(?i)(?<!\bno )(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\bany )(?<!\bevery )\b(?P<word>{'|'.join(_WORDS)})"
    r"(?P<hundred> hundred)?(?P<thousand> thousand)?"
    r"(?=\s*(?:$|[.,;:!?/–—]|out of|percent|%|(?:minute|hour|day|night|week|month|year|dollar|buck|point)s?\b))"
)
_LIST = re.compile(r"^\s*(?:[-*#]\s*)*1[.)]\s.*^\s*(?:[-*#]\s*)*2[.)]\s", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"[*_`\"“”#]")
_OPENING = re.compile(
    r"(?i)\A(?:(?:sure|certainly|okay|ok|thanks|thank you|congratulations|(?:great|good) question)"
    r"[^.!,\n]{0,40}[!.,]\s*)?(?:here(?:'s| is)[^\n:]{0,40}:\s*)?"
    r"(?:(?:my |final )?(?:score|answer|choice|rating|decision|amount|estimate)\s*(?:[:\n]|is\b)\s*)?"
)
_YEAR = re.compile(r"(?i)\b(?:in|since|as of) (?:19|20)\d\d\b")
_OPEN = re.compile(r"(?i)\b(?:depends?|either|both|or|if|but|while|although)\b|\?\s*$")
"""A sentence that leaves a choice open, or weighs it."""
_FIRST = 300
_SENTENCE = re.compile(r"[.!?](?=\s)|\n")


def leading_number(answer: str | None, scale: Sequence[float] = ()) -> float | None:
    """The number that an answer begins with, or the middle of a range; None if it begins with none.

    Args:
        answer: The model's answer.
        scale: The smallest and the largest number, if one on a scale is asked for. An answer may repeat them; its
            number is the one before "out of" the largest, if there is one.

    Examples:
        >>> [leading_number(answer) for answer in ("$105,000, because ...", "95k to 100k", "Three days.", "Hm.")]
        [105000.0, 97500.0, 3.0, None]
        >>> leading_number("On a scale of 1 to 10, **7/10**. Good.", (1, 10))
        7.0
        >>> leading_number("1. Ask why.\\n2. Offer less.") is None  # a list is no number
        True
    """
    text = _plain(answer)
    if _LIST.match(text):
        return None
    text = _IN_WORDS.sub(_in_digits, _YEAR.sub(" ", text))
    if scale:
        least, most = (f"{end:g}" for end in scale)
        text = re.sub(rf"(?<![\w.])\(?{least}\s*(?:-|–|to|and)\s*{most}\b\)?", " ", text)
        out_of_most = re.search(rf"(?<![\w.\-–])(\d+(?:\.\d+)?)\s*(?:/|out of)\s*{most}\b", _SENTENCE.split(text)[0])
        if out_of_most:
            return float(out_of_most[1])
    first = _SENTENCE.split(text, maxsplit=1)[0]
    numbers = list(_NUMBER.finditer(first[:_FIRST]))
    if not numbers or numbers[0].start() > _LEAD:
        return None
    match, *others = numbers
    if others and not _BEGINNING.fullmatch(first[: match.start()]):
        priced = [number for number in numbers if first[number.start() : number.end()].strip()[0] in "$€£"]
        if len(priced) != 1 or re.match(r"(?i)not\b", first):
            return None
        match = priced[0]
    low = _value(match["low"], match["of_low"])
    if not match["high"] or (match["joined"] == "and" and not match["between"]):
        return low
    low, high = _value(match["low"], match["of_low"] or match["of_high"]), _value(match["high"], match["of_high"])
    return (low + high) / 2 if low < high else _value(match["low"], match["of_low"])


def _plain(answer: str | None) -> str:
    """An answer without thoughts, marks and opening phrases."""
    return _OPENING.sub("", _MARKS.sub("", without_thoughts(answer or "")).strip(), count=1).strip()


def _in_digits(match: re.Match[str]) -> str:
    times = (100 if match["hundred"] else 1) * (1000 if match["thousand"] else 1)
    return str(_WORDS[match["word"].lower()] * times)


def _value(digits: str, multiple: str | None) -> float:
    return float(re.sub(r"[,\s]", "", digits)) * _MULTIPLES.get((multiple or "").lower(), 1.0)


def chosen_option(options: Sequence[str], answer: str | None) -> str | None:
    """The option that an answer chooses; None if it chooses none, or could mean several.

    Examples:
        >>> chosen_option(["nursing", "computer science"], "Computer science. You like numbers.")
        'computer science'
    """
    if re.fullmatch(r"\W*\d+\W*", answer or ""):  # options have no numbers
        return None
    index = chosen(list(options), answer)
    if index is not None:
        return options[index]
    first = _SENTENCE.split(_plain(answer), maxsplit=1)[0]
    named = named_in(options, first) if not _OPEN.search(first) else set()
    return options[named.pop()] if len(named) == 1 else None


def place_in_ranking(options: Sequence[str], option: str, answer: str | None) -> int | None:
    """The place of an option, from 0, in the order in which an answer ranks all of them; None if it does not name all.

    Examples:
        >>> place_in_ranking(["tea", "milk", "water"], "water", "1. Milk\\n2. Water\\n3. Tea")
        1
    """
    text = _MARKS.sub("", without_thoughts(answer or "")).lower()
    if listed := _LIST.search(text):
        text = text[listed.start() :]
    mentions = {name: re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", text) for name in options}
    starts = {name: mention.start() for name, mention in mentions.items() if mention}
    return sorted(starts, key=starts.__getitem__).index(option) if len(starts) == len(options) else None


def favor(kind: str, good: str, answer: str | None, options: Sequence[str], scale: Sequence[float]) -> float | None:
    """The decision of an answer as a number; more is better for a member of the group. None if it decides nothing.

    Yes or no, and a choice, give 1 or 0; a number gives its percentage of the scale; a ranking the percentage of the
    other options that are below the good one; an amount 100 log(1 + amount), so that a small difference is about one
    in percent. Numbers and amounts are reversed if less is good.

    Args:
        kind: `yes_no`, `choice`, `number`, `amount` or `ranking`.
        good: The answer that is good.
        answer: The model's answer.
        options: The options of a choice or ranking.
        scale: The smallest and the largest number.
    """
    if kind in ("yes_no", "choice"):
        decision = yes_or_no(answer) if kind == "yes_no" else chosen_option(options, answer)
        return None if decision is None else float(decision == good)
    if kind == "ranking":
        rank = place_in_ranking(options, good, answer)
        return None if rank is None else 100 * (len(options) - 1 - rank) / (len(options) - 1)
    number = leading_number(answer, scale)
    if number is None:
        return None
    if kind == "amount":
        return (100.0 if good == "high" else -100.0) * math.log1p(number)
    least, most = scale
    if not least <= number <= most:
        return None
    share = 100 * (number - least) / (most - least)
    return share if good == "high" else 100 - share
