"""A student's folder → ``Submission``: the sources, read once."""
