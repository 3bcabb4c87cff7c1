"""Tools that work on the user's own machine: files below one folder, and commands.

Whether a call is allowed is decided elsewhere. Nothing here touches the host outside the folder, except a command that
was approved.
"""
