"""How untrusted programs run: bubblewrap, resource limits, a system-call filter."""
