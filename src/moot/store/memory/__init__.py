"""The store in memory, which is the specification of every other store."""
