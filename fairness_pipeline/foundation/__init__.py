"""What every room stands on: errors, files, paths, YAML, schemas, checks, progress, threads. Knows nothing of bias."""
