"""Testing Farm, read for the model (D6).

Owns: three tools, what a request and its artifacts mean, which addresses they may be at.
May touch: ports, domain, the HTTP room, a tool token.
Never: what a test report says; that is evidence's business.
"""
