"""The prefix sums of n numbers."""
