"""YAML to frozen settings.

Owns: settings, workflows, loading, explaining and watching them.
May touch: ports, domain.
Never: adapters, the environment at import, the values of tokens that write.
"""
