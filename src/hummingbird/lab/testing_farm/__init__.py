"""Testing Farm on loopback: its API and its artifacts' server, from a case.

Owns: what both say about test requests, awkward parts included.
May touch: a case's folder, loopback.
Never: adapters or service, so that it cannot share their mistakes.
"""
