"""Whether a turn looks anything up, what it was told to read first, what it found, and what a model is shown of it."""
