"""What looking costs: the page of a long session, and runs that are watched by many."""
