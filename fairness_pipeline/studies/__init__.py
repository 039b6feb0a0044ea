"""One folder a study; `fairness_pipeline.study.STUDIES` names them."""
