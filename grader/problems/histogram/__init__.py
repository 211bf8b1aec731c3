"""counts[b] = how many of n keys are b."""
