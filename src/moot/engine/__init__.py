"""The write path of the host, and the effects that its runs are owed."""
