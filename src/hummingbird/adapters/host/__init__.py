"""The engineer's own machine: files below one folder, and commands.

Owns: reading, searching and changing files there and taking that back; running commands and ending all they started.
May touch: ports, domain, the file system below the folder, processes that it started itself.
Never: who may call it; tokens; anything of the host outside the folder, other than by a command that was approved.
"""
