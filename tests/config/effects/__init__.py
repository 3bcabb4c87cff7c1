"""That each key of the configuration changes what happens."""
