"""One submission through every stage: folder → ``Result``."""
