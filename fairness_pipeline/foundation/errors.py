"""The one error a user is meant to read."""


class FairnessError(Exception):
    """Something the user can mend: names the file, line or key, what was expected, what came, and the next step."""
