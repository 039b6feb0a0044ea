"""The studies, one folder each; `fairness_pipeline.project.study.STUDIES` lists them."""
