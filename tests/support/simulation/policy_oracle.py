"""What should have become of every slot, told from what happened to the host and from the rules of
the page on schedules. It shares no code with what is tested."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Look:
    """The host asked what is due, and wrote the answer down."""

    now: int
    busy: bool
    work: bool
    paused: bool
    enabled: bool


@dataclass
class World:
    """What happened, apart from what was decided."""

    looks: list[Look] = field(default_factory=list)
    #: pairs of beginning and end, the end of a last one may be open
    pauses: list[list[int]] = field(default_factory=list)
    offs: list[list[int]] = field(default_factory=list)
    #: times in which the member was away
    away: list[list[int]] = field(default_factory=list)
    asked: set[int] = field(default_factory=set)

    @property
    def rests(self) -> list[list[int]]:
        return [*self.pauses, *self.away]


@dataclass(frozen=True)
class Policy:
    overlap: str
    catch_up: str
    window: int
    jitter: int
    name: str


def due_times(slots: list[int], policy: Policy, after_last: int) -> dict[int, int]:
    dues = {}
    for slot, following in zip(slots, [*slots[1:], after_last], strict=True):
        most = min(policy.jitter * 1000, following - slot - 1)
        digest = hashlib.blake2b(f"{policy.name}\0{slot}".encode(), digest_size=8).digest()
        dues[slot] = slot + int.from_bytes(digest) % (most + 1) if most > 0 else slot
    return dues


def verdicts(dues: dict[int, int], world: World, policy: Policy) -> dict[int, tuple[str, int]]:
    """For every slot that came to be looked at: what it came to and when."""
    final: dict[int, tuple[str, int]] = {}
    waiting: list[tuple[int, int]] = []
    open_slots = sorted(dues, reverse=True)
    for look in world.looks:
        busy, waiting = _waiting(waiting, look, world, final)
        ripe = []
        while open_slots and dues[open_slots[-1]] <= look.now:
            ripe.append(open_slots.pop())
        if ripe:
            _batch(ripe, dues, look, world, policy, busy, waiting, final)
    for slot, _ in waiting:
        final[slot] = ("waiting", 0)
    return final


def _waiting(
    waiting: list[tuple[int, int]],
    look: Look,
    world: World,
    final: dict[int, tuple[str, int]],
) -> tuple[bool, list[tuple[int, int]]]:
    kept = []
    busy = look.busy
    for slot, since in waiting:
        if any(since <= start <= look.now for start, _ in world.offs):
            final[slot] = ("disabled", look.now)
        elif any(since <= start <= look.now for start, _ in world.rests):
            final[slot] = ("paused", look.now)
        elif busy:
            kept.append((slot, since))
        elif not look.work:
            final[slot] = ("no-work", look.now)
        else:
            final[slot] = ("start", look.now)
            busy = True
    return busy, kept


def _batch(
    ripe: list[int],
    dues: dict[int, int],
    look: Look,
    world: World,
    policy: Policy,
    busy: bool,
    waiting: list[tuple[int, int]],
    final: dict[int, tuple[str, int]],
) -> None:
    def within(times: list[list[int]], slot: int) -> bool:
        return any(start <= dues[slot] < end for start, end in times)

    possible = []
    for slot in ripe:
        if not look.enabled or within(world.offs, slot):
            final[slot] = ("disabled", look.now)
        elif look.paused or within(world.rests, slot):
            final[slot] = ("paused", look.now)
        elif slot in world.asked:
            final[slot] = ("asked", look.now)
        else:
            possible.append(slot)
    late = {slot: look.now - dues[slot] for slot in possible}
    timely = {slot for slot in possible if late[slot] <= 5000}
    timely |= {slot for slot in possible[-1:] if late[slot] <= 60_000}
    in_window = {slot for slot in possible if late[slot] <= policy.window * 1000}
    caught = {
        "none": set(),
        "one": in_window & set(possible[-1:]),
        "all-within-window": in_window,
    }[policy.catch_up] - timely
    chosen = []
    for slot in possible:
        if slot not in timely and slot not in caught:
            reason = "missed" if policy.catch_up == "none" or slot in in_window else "window"
            final[slot] = (reason, look.now)
        elif not look.work:
            final[slot] = ("no-work", look.now)
        else:
            chosen.append(slot)
    if policy.overlap == "cancel-other":
        for slot in chosen:
            final[slot] = ("start" if slot == chosen[-1] else "overlap", look.now)
    else:
        _overlap(chosen, caught, look.now, policy, busy, waiting, final)


def _overlap(
    chosen: list[int],
    caught: set[int],
    now: int,
    policy: Policy,
    busy: bool,
    waiting: list[tuple[int, int]],
    final: dict[int, tuple[str, int]],
) -> None:
    places = {"skip": 0, "buffer-one": 1, "buffer-all": 100, "allow": 0}[policy.overlap]
    caught_up = 0
    for slot in chosen:
        if slot in caught and caught_up == 100:
            final[slot] = ("missed", now)
        elif policy.overlap == "allow" or not busy:
            busy = True
            caught_up += slot in caught
            final[slot] = ("start", now)
        elif len(waiting) < places:
            caught_up += slot in caught
            waiting.append((slot, now))
        else:
            final[slot] = ("overlap", now)
