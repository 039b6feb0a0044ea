"""A command that the toy study adds."""


def add_commands(command) -> None:
    """Adds the command."""
    command("roll", _roll, "Roll a die.").add_argument("--die", required=True)


def _roll(arguments) -> int:
    print(f"{arguments.die} shows 4")
    return 0
