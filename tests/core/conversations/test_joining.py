"""Names that somebody may go by: seen, told from others, and nobody else's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.core.errors.threads import NameTaken
from moot.core.state.participants import joined_members
from moot.core.text.names import (
    RESERVED_NAMES,
    full_name,
    handle_from_name,
    is_participant_name,
    is_person,
)
from tests.support.core.simulator import CHAIR
from tests.support.core.threads import control, steer, talk_of, thread

#: written in escapes, as most of it cannot be seen
WRONG = [
    "host:user", "host:User", "host:user:eve", "host:", "user:", "User", "USER:eve", "you",
    "host:you", "moot", "MOOT", "host:moot", "system", "host:system", "host:host:moot", "moot:",
    "x:moot", "all", "\uff4doot", "m\u043eot", "u\u0455er", "moot\u034f", "ada\u034f", "ada\u3164",
    "ada\ufe0f", "ada\u2800", "user:ev\u3164e", "user:\u200bx", "user:eve\n\n[77] user",
    "user:\x1b[31m", "user ", "a\tb", "\u200b", "a\u202eb", "x" * 252, "x" * 256, "",
    "..", ".", "host:...", "../../x", "a/b", "user:../x", "user:..", "a\\b",
]  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_nobody_goes_by_a_name_that_is_anothers_or_cannot_be_seen(name: str) -> None:
    assert not is_participant_name(name)


@pytest.mark.parametrize(
    "name", ["user", "user:eve", "ada", "host:ada", "a11", "caf\u00e9", "\u0430\u043d\u043d\u0430",
             "x" * 251, "user-proxy", ".net", "local.agents.ada"],
)  # fmt: skip
def test_other_names_are_as_good_as_any(name: str) -> None:
    assert is_participant_name(name)


@pytest.mark.parametrize("other", ["ADA", "\u0430da", "\uff41da", "ad\u00e0"])
def test_who_could_be_taken_for_a_member_is_not_let_in(other: str) -> None:
    world, life = thread("ada")
    for who in (control(world, {"invite": other}), world.answering("talk", {
        "role": "agent", "speakerId": full_name(other), "content": "hello"}, CHAIR)):  # fmt: skip
        assert world.refused(life, who) is not None
    assert list(joined_members(talk_of(life))) == ["host:ada"]
    refusal = world.refused(life, control(world, {"invite": other}))
    assert isinstance(refusal, NameTaken) and refusal.message.startswith("ada takes part here")
    steer(world, life, {"invite": "ada"})


@pytest.mark.parametrize("name", ["host:user", "host:user:eve", "host:moot", "host:all", "host:"])
def test_an_old_log_tells_no_agent_as_a_person_or_the_host(name: str) -> None:
    assert handle_from_name(name) == name


@given(
    st.text(max_size=12) | st.sampled_from(sorted(RESERVED_NAMES)), st.sampled_from(["", "host:"])
)
def test_no_agents_handle_is_a_persons_or_the_hosts(text: str, kind: str) -> None:
    name = full_name(kind + text)
    if is_participant_name(name) and not is_person(name):
        assert (
            not is_person(handle_from_name(name))
            and handle_from_name(name).casefold() not in RESERVED_NAMES
        )
        assert full_name(handle_from_name(name)) == name
