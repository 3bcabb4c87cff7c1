"""Tools of MCP servers, offered as tools of ours.

Only tools that the configuration names are offered. A program that is started for a server gets PATH, HOME and LANG of
our environment and nothing else. We do not answer requests that a server makes to us.
"""
