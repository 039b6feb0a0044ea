"""The lineage of all studies, the plan that brings it up to date, and Dagster, which lives here and nowhere else."""
