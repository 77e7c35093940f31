"""Actions of this context."""
