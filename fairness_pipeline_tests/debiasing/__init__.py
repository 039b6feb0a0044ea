"""Tests of fairness_pipeline.debiasing."""
