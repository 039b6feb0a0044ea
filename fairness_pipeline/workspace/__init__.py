"""The contents of a workspace: the lake and its SQL, scores of distinct texts, query epochs, published tables."""
