"""One folder a study; `fairness_pipeline.project.study.STUDIES` names them."""
