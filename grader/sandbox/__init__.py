"""How untrusted programs run: bubblewrap, resource limits, a filter for system calls."""
