"""What a lab asks for: ``problem.py`` is the protocol, and each problem is a module of its own."""
