"""The name of the distribution, so that `python -m hummingbird_agent` works; everything is in `hummingbird`."""
