"""The webhooks of the GitLab stand-in: who subscribed, what each event says, how it is signed and sent.

Owns: payloads, signatures, deliveries.
May touch: the world, shapes.
Never: addresses other than this machine's.
"""
