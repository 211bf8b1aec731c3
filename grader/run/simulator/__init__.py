"""The simulator as a backend: ptxsim in a process of its own."""
