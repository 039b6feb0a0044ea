"""The line-up: innocent and guilty systems of known truth, whom the verdict rules must tell apart.

Every rule of every study is held to it (docs/line-up.md). A rule that calls an innocent system biased in more than 5% of
draws, or finds less than it says it would find, is wrong, whatever its derivation.
"""
