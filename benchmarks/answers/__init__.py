"""What an agent spends to learn why a pipeline failed: with `hummingbird mcp`, and with plain GitLab tools."""
