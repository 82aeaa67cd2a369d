"""The protocol as it is on the wire: real servers, real HTTP, every answer validated."""
