"""Time does not go back, and ids look like ids."""

import os
import re
import time

import pytest

from moot.clock import SystemClock


def test_an_id_is_its_prefix_and_twenty_letters_of_base32() -> None:
    made = [SystemClock().new_id("run_") for _ in range(1000)]
    assert all(re.fullmatch("run_[a-z2-7]{20}", name) for name in made)
    assert len(set(made)) == 1000
    assert set("".join(made)) >= set("abcdefghijklmnopqrstuvwxyz234567")


def test_a_child_process_gives_out_no_id_of_its_parents() -> None:
    clock = SystemClock()
    clock.new_id("")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, "".join(clock.new_id("") for _ in range(100)).encode())
        os._exit(0)
    os.close(write)
    theirs = b""
    while piece := os.read(read, 4096):
        theirs += piece
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    text = theirs.decode()
    ours = {clock.new_id("") for _ in range(100)}
    assert ours.isdisjoint(text[at : at + 20] for at in range(0, len(text), 20))
    assert len(text) == 2000


def test_a_machine_clock_that_is_set_back_stands_still_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    seen = []
    for nanos in (5_000_000, 3_000_000, 7_000_000):
        monkeypatch.setattr(time, "time_ns", lambda nanos=nanos: nanos)
        seen.append(clock.micros())
    assert seen == [5000, 5000, 7000]
