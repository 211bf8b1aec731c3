"""Turns what the engine saw into findings and counts, with their places."""
