"""Memory of agents: the journal of entries, and a node's access to it."""
