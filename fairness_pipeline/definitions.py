"""What Dagster loads: the lineage of one profile (`FAIRNESS_PROFILE`)."""

import dagster as dg

from fairness_pipeline.defs import automation, dialogue_fairness, reports, sentiment_equity

defs = dg.Definitions(
    assets=dg.load_assets_from_modules([dialogue_fairness, sentiment_equity, reports]),
    jobs=[automation.bring_up_to_date],
    schedules=[automation.weekly],
    sensors=[automation.changed_files],
    executor=dg.in_process_executor,  # a process a step would import torch once a step
)
