"""Properties of GPUs: one table, peaks, and the GPU properties that host code sees."""
