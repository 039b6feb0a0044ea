"""What is done to a response before it is measured."""

import re

_REPEATED = re.compile(r"""([,.!?*'"])(?:\s*\1)+""")


def collapse_punctuation(response: str) -> str:
    """`response` with repeated marks (`, . ! ? * ' "`) reduced to one, also where spaces stand between them.

    Repeats upset the sentiment and offence classifiers (Liu et al. 2020, section 3.2).

    >>> collapse_punctuation("no !!! why ? ?")
    'no ! why ?'
    """
    return _REPEATED.sub(r"\1", response)
