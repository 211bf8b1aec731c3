"""A whole class: finding the submissions and grading them in parallel."""
