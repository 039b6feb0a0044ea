"""Audits chatbots and language models for social bias: published studies as one Dagster pipeline."""

__version__ = "0.1.0"
