"""What it costs to find a session again by what was said in it."""
