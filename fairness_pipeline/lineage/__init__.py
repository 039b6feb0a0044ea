"""Assets and when they must be made: declarations, making, staleness, plans. Nothing here depends on Dagster."""
