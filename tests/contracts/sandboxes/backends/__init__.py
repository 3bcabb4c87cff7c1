"""The backends on trial: how each is had here, and what can be done to it from outside.

Owns: making sandboxes, killing them behind their backs, counting what is left of them.
May touch: sandboxes, the lab, podman, kubectl, this machine's processes.
Never: what a sandbox has to do; the cases say that.
"""
