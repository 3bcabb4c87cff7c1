"""One loop per rival framework, each run by the interpreter of its own environment. None imports another."""
