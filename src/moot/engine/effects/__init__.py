"""Effects that nodes have on the world: attempts, the effect ledger, budgets."""
