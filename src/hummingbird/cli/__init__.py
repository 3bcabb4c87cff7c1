"""The commands of the `hummingbird` program: their options, what they print and their exit codes."""
