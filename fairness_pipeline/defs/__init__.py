"""All code that uses Dagster: assets, partitions, runs, automation."""
