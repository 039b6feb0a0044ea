"""Measures of language models: stereotypes in phrases, and downstream tasks."""
