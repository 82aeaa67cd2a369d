"""A thread is over when everybody in it is done, and a person is among them."""

from itertools import permutations

import pytest
from msgspec.structs import replace

from tests.support.core.simulator import Speaker
from tests.support.core.threads import check, control, say, speak_all, steer, talk_of, thread, told

ADA, BO = Speaker("key_ada", ("host:ada",)), Speaker("key_bo", ("host:bo",))
USER, EVE = Speaker("key_user", ("user",)), Speaker("key_eve", ("user:eve",))
DONE = {"done": True}
WHO = {"host:ada": ADA, "host:bo": BO, "user": USER}


@pytest.mark.parametrize("order", list(permutations(WHO)))
def test_a_thread_in_which_all_are_done_is_closed_whoever_is_last(order: tuple[str, ...]) -> None:
    world, life = thread("ada", "bo")
    for name in order:
        assert talk_of(life).open
        steer(world, life, DONE, WHO[name], name)
    assert not talk_of(life).open and life.run.terminal
    last = told(life)[-1]
    assert (last["from"], last["content"]) == ("moot", "Everybody is done; the thread is closed.")
    assert last["meta"]["tags"] == ["coordinator", "closed"] and last["meta"]["outcome"] is None
    check(life)


def test_agents_do_not_end_a_thread_among_themselves() -> None:
    world, life = thread("ada", "bo")
    for name in ("host:ada", "host:bo"):
        steer(world, life, DONE, WHO[name], name)
    steer(world, life, DONE, EVE, "user:eve")
    assert talk_of(life).open, "who began it has not said so"
    check(life)


def test_who_speaks_again_is_not_done() -> None:
    world, life = thread("ada")
    steer(world, life, DONE, USER, "user")
    say(world, life, "One more thing, @ada.")
    speak_all(world, life)
    steer(world, life, DONE, ADA, "host:ada")
    assert talk_of(life).open
    steer(world, life, DONE, USER, "user")
    assert not talk_of(life).open
    check(life)


def test_nobody_is_alone_with_himself_done() -> None:
    world, life = thread()
    steer(world, life, DONE, USER, "user")
    assert talk_of(life).open


def test_what_may_not_end_it_counts_all_the_same() -> None:
    world, life = thread("ada")
    world.take(life, replace(control(world, DONE, USER, "user"), ends=False))
    assert talk_of(life).open
    steer(world, life, DONE, ADA, "host:ada")
    assert not talk_of(life).open
    check(life)
