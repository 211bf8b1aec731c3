"""Everything that a course system needs to grade with this grader, as files."""
