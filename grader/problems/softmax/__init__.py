"""The softmax of each row of a matrix."""
