"""The server on the command line: serve, dev, keys, the database and doctor."""
