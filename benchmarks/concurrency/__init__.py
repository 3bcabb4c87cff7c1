"""How many runs fit into one process."""
