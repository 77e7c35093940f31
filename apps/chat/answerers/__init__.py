"""Who writes an answer, from what, and how its citations are checked."""
