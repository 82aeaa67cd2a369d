"""Answers of the API as Structs, which the client decodes."""
