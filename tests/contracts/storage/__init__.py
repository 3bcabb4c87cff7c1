"""What every bucket must do for us, whoever serves it.

Owns: one suite of cases, and the servers to play it on.
May touch: the adapters, the port, processes of its own, loopback.
Never: a cloud.
"""
