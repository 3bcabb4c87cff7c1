"""Queues for work orders, in SQLite and in SQS with the same semantics, and the SQS inbox that events come from.

The queues implement the protocols of `core/protocols/queues.py`. They treat a message body as plain text.
"""
