"""The HTTP surface: parse, authorise, call the host, encode. No rule lives here."""
