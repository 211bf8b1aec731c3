"""The product of two matrices, in every layout."""
