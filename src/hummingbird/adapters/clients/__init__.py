"""What every HTTP client of ours has to say before it sends anything.

Owns: certificates that are trusted, sentences about proxies and certificates that cannot be used.
May touch: domain.
Never: addresses, credentials, what is sent.
"""
