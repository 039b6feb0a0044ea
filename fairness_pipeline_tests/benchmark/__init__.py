"""`make benchmark`: what is fast, against plain code in the same run; writes docs/performance.md."""
