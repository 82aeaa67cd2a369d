"""How much room is left for deliveries in some states, counted seldom."""

from moot.store.protocol import Store


class Room:
    """Counting walks through all rows of a subscription, so what is free is counted once and then
    used up. What leaves meanwhile makes room at the next count: never too many, at times too few
    by what is used up between two counts."""

    def __init__(self, store: Store, states: tuple[str, ...], most: int) -> None:
        self._store, self._states, self._most = store, states, most
        self._free: dict[tuple[str, str], int] = {}

    async def free(self, tenant: str, subscription: str) -> bool:
        """Takes one place, if there is one."""
        name = (tenant, subscription)
        if self._free.get(name, 0) < 1:
            counts = await self._store.delivery_counts(tenant, subscription)
            taken = sum(counts.get(state, 0) for state in self._states)
            self._free[name] = self._most - taken
        if self._free[name] < 1:
            return False
        self._free[name] -= 1
        return True
