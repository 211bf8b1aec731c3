"""The questions about products of matrices, and their answers."""
