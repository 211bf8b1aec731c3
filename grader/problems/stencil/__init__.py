"""Heat that spreads through a grid of two or three dimensions, several steps a call."""
