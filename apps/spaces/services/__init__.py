"""Writes on spaces: `space`, `members`, `invitations`, `keys`."""
