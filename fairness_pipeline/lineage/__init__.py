"""What an asset is and when it must be made: recipes, partitions, staleness, plans. Does not know Dagster."""
