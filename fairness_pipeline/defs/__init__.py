"""Dagster lives here and nowhere else: assets, partitions, checks, jobs and the walk over them."""
