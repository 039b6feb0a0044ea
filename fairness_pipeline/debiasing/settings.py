"""Settings that methods of several wings share."""

from fairness_pipeline.foundation.yaml_files import Specification


class NoSettings(Specification):
    """A method without settings."""
