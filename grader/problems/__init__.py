"""What is asked: inputs, the reference, and how close is close enough."""
