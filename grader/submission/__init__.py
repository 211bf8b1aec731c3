"""A student's folder → ``Submission``: the sources as they were read, once."""
