"""Tests, effect sizes, intervals, corrections, equivalence, resampling, and the verdict drawn from them."""
