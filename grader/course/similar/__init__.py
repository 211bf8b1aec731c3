"""Pairs of submissions that share too much code."""
