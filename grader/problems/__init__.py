"""The task: inputs, the reference and the tolerance."""
