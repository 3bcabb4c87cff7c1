"""Talk to GitLab: `read` holds the agent's read-only tools, `write` everything that the service writes.

The two halves never import each other, so the write token cannot reach the agent. What both need (access levels,
webhook events, the retry policy) stands beside them.
"""
