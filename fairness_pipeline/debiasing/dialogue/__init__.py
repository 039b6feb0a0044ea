"""Debiasing of dialogue models, one method a file; controls are options of the method that they accompany."""
