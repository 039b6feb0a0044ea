"""What a workspace holds: the lake and its SQL, distinct rows queried once, query epochs, published tables."""
