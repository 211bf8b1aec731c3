"""Stored results → ranked boards."""
