"""One protocol, several stores: sqlite (the default) and memory (the specification)."""
