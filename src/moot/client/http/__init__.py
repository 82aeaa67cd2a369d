"""HTTP calls of the client: operations, senders, streams and methods."""
