"""One suite per port, run unchanged on every adapter that this machine can offer.

Owns: what every adapter of a port must do.
May touch: ports, domain, and the adapters that are put on trial.
Never: what only one adapter does; that is proven beside the adapter.
"""
