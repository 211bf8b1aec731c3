"""The reference ladder: rungs, their results, the table and the page."""
