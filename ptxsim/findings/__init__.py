"""What the engine saw → findings and counts, with their places."""
