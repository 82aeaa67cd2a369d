"""HTTP API of the host: decode, authorise, send one command, encode."""
