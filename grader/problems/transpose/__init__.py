"""out = inᵀ."""
