"""Where findings stand after renames, moves and rebases made with git on real source trees."""
