"""Dagster, which lives here and nowhere else: assets, partitions, runs, automation."""
