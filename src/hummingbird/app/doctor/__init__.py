"""`hummingbird doctor`: every part tried for real, and what to do about each.

Owns: the checks, and running them side by side.
May touch: everything below, as assembly does.
Never: printing, a token's value in a sentence, anything left behind.
"""
