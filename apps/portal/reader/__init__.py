"""The document reader: an original beside the passages it was cut into, each tied to the other by exact positions."""
