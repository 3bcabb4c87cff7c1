"""Finding failures in logs, XML and Tekton objects; pure.

Owns: regions, scores, classes, fingerprints, previews.
May touch: domain.
Never: I/O or a model.
"""
