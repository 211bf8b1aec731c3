"""A whole class: finding the submissions, and grading them side by side."""
