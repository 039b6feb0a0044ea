"""Measures of annotators: rates by group, item by item, and inferred truths."""
