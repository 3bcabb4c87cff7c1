"""The routes of the GitLab stand-in that write, and the changes themselves, which tests may also make directly."""
