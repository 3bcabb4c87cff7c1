"""Tekton's objects as evidence: runs, tasks, steps and why they ended.

Owns: both versions of the API, lists of either server, reasons and what they blame.
May touch: domain, and evidence's regions, causes and fingerprints.
Never: a cluster.
"""
