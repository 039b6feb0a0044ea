"""Lets `python -m fairness_pipeline.cli` run `fairness-pipeline`."""

from fairness_pipeline.cli import main

if __name__ == "__main__":
    main()
