"""The only error whose message is written for users."""


class FairnessError(Exception):
    """A problem that the user can fix: names the file, line or key, what was expected and found, and the next step."""
