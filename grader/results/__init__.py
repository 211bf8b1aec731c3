"""Where result documents are kept."""
