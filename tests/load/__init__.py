"""Many at once: what holds for one has to hold for all of them.

Owns: bursts of webhooks through the whole service, and many processes at one queue.
May touch: everything, on loopback.
Never: how long something takes.
"""
