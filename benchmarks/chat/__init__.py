"""What somebody at a terminal waits for: an interrupt, a key, the prompt, a search, and what the prompt weighs."""
