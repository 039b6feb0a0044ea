"""A command of the toy study's own."""


def add_commands(command) -> None:
    """Adds it."""
    command("roll", _roll, "Roll a die.").add_argument("--die", required=True)


def _roll(arguments) -> int:
    print(f"{arguments.die} shows 4")
    return 0
