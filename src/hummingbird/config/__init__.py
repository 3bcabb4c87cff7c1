"""YAML to frozen settings.

Owns: settings, workflows, loading and watching them.
May touch: ports, domain.
Never: adapters, tokens' values.
"""
