"""Removes what a reasoning model writes before its answer (`<think> ... </think>`)."""

import re

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
_OPENED_IN_PROMPT = re.compile(r"\A(?:(?!<think>).)*?</think>", re.DOTALL)
_CUT_SHORT = re.compile(r"<(think|thinking|reasoning)>.*\Z", re.DOTALL)


def without_thoughts(text: str) -> str:
    """An answer without its thoughts; empty if the tokens ran out before the thoughts ended.

    Examples:
        >>> without_thoughts("<think>He asks ...</think>Good morning.")
        'Good morning.'
        >>> without_thoughts("<think>He asks")
        ''
    """
    if "<" not in text:
        return text
    for pattern in (_THOUGHTS, _OPENED_IN_PROMPT, _CUT_SHORT):
        text = pattern.sub("", text)
    return text.strip()
