"""Which cluster, as whom: shared by the rooms that talk to one.

Owns: kubeconfig, its credentials, the client that carries them.
May touch: domain.
Never: what is asked of the cluster; any other room of the adapters.
"""
