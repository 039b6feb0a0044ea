"""The line-up: innocent and guilty systems of known truth, which the verdict rules must tell apart.

Every rule of every study must pass it (docs/line-up.md). A rule is wrong, whatever its derivation, if it calls an
innocent system biased in more than 5% of draws, or finds less than it claims to find.
"""
