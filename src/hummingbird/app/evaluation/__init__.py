"""`hummingbird eval`: runs over cases whose truth is known, and what each answer is worth.

Owns: what a case expects, what an answer states, the scores, recordings, one trial and many.
May touch: everything that `run` is made of, and the lab.
Never: a real GitLab, a configured store, anything that posts.
"""
