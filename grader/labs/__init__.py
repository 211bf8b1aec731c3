"""Lab files (YAML), and what reads and checks them."""
