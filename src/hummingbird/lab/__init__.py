"""Stand-ins for services that a laptop does not have: GitLab, Konflux and Testing Farm.

They imitate the HTTP behaviour of the real services, awkward parts included. They never import the code that talks to
those services, so that they cannot share its mistakes.
"""
