"""`hummingbird eval`: runs workflows on cases with known answers and scores the results.

It uses the lab and what `hummingbird run` is made of. It never contacts a real GitLab, uses no configured store and
posts nothing.
"""
