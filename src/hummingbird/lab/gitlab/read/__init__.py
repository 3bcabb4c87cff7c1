"""The routes of the GitLab stand-in that read. They never change the state."""
