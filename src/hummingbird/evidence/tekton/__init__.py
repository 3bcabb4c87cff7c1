"""Read Tekton objects as evidence: runs, tasks, steps and why they ended, in both versions of the API.

Pure code: it never talks to a cluster.
"""
