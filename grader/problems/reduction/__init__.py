"""The sum of n numbers."""
