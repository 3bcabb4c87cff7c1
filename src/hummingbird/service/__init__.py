"""The service that turns GitLab events into notes: webhooks, triggers, both stages, the worker and the publisher."""
