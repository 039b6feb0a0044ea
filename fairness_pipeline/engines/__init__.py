"""The engines that do the work: this process with its workers, or a Ray cluster."""
