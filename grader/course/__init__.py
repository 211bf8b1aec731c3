"""A whole class: grading runs, roster, leaderboards, similar code, exports."""
