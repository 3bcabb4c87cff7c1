"""`hummingbird doctor`: tests every part of the setup for real and says how to fix what fails.

The checks run side by side. They leave nothing behind, and no finding contains the value of a token.
"""
