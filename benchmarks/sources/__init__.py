"""What it costs to bring a long log and a long list from a source into the sandbox."""
