"""Assets and when they must be made: recipes, partitions, staleness, plans. Nothing here depends on Dagster."""
