"""Rungs of the reduction beside CUB, as native programs."""
