"""What a burst of webhooks costs the service, and what a webhook costs its door."""
