"""The lab report: measured points, human points, and both together."""
