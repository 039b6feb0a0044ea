"""Where the work is done: in this process and its workers, or on a Ray cluster."""
