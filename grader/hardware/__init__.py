"""What GPUs can do: one table, their peaks, the targets that host code asks about."""
