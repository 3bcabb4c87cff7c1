"""A small Kubernetes whose pods are real podman containers, and a kubectl for machines without one.

Owns: the part of the API that sandboxes need, awkward parts included; its pods' containers, which it removes.
May touch: podman, loopback.
Never: anything of ours, so that it cannot share the adapters' mistakes.
"""
