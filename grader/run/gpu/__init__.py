"""The GPU as a backend: CuPy replays plans in a disposable process."""
