"""Removes what a reasoning model writes before its answer (`<think> ... </think>`)."""

import re

_OPENING = re.compile(r"<(think|thinking|reasoning)>")


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
    text = _without_closed(text)
    before, closing, after = text.partition("</think>")
    if closing and "<think>" not in before:  # the prompt opened the thoughts
        text = after
    if cut_short := _OPENING.search(text):
        text = text[: cut_short.start()]
    return text.strip()


def _without_closed(text: str) -> str:
    """A text without the closed thoughts. The time is linear in its length, which a server decides."""
    kept: list[str] = []
    unclosed: set[str] = set()
    position = 0
    for opening in _OPENING.finditer(text):
        name, closing = opening[1], f"</{opening[1]}>"
        if opening.start() < position or name in unclosed:
            continue
        end = text.find(closing, opening.end())
        if end < 0:  # no later one of this name is closed
            unclosed.add(name)
            continue
        kept.append(text[position : opening.start()])
        position = end + len(closing)
    return "".join([*kept, text[position:]])
