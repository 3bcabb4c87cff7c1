"""The agent in an editor, over the Agent Client Protocol (ACP).

Only this package imports the protocol's library, `acp`.
"""
