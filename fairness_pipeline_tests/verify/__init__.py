"""`make verify`: what takes too long for `make test`."""
