"""The verbs of the command line that all studies share, one a file: each adds itself and runs."""
