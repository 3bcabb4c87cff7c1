"""Where commands run: no network, no credential.

Owns: bubblewrap, podman, kubernetes, pool.
May touch: ports, domain, clusters.
Never: tokens, host mounts.
"""
