"""The wiki tab of a base: its tree, lists, pages, what changed."""
