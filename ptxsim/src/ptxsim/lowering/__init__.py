"""PTX records → the engine's operations."""
