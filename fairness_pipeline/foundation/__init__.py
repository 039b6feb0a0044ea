"""Shared helpers: errors, files, paths, YAML, schemas, checks, progress, threads. Nothing here is about bias."""
