"""y = alpha·x + y."""
