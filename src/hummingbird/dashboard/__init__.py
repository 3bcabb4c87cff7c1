"""The dashboard: web pages about sessions, failures, quality and costs, with live updates and access control."""
