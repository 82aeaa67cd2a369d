"""Programs outside cannot keep one another busy: whichever place they meet in, the host stops."""

import threading
from typing import Any

import pytest

from tests.support.api.caller import Api
from tests.support.api.councils import THREADS, convened, joined, read, steer
from tests.support.api.threads import events, new, posted

NAMES = ("pa", "pb")


def side(api: Api) -> str:
    body = {"title": "Aside", "participants": list(NAMES)}
    answer = api.post(f"{THREADS}/{new(api)}/links", body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["threadId"])


def thread(api: Api) -> str:
    name = new(api)
    for each in NAMES:
        posted(api, name, {"invite": each}, type="control")
    return name


PLACES: dict[str, Any] = {
    "thread": thread,
    "side thread": side,
    "open council": lambda api: convened(api, *NAMES, open=True),
    "council": lambda api: convened(api, "host:pa", "host:pb"),
}


class Program:
    """Takes up what it is asked, and asks the other."""

    def __init__(self, api: Api, place: str, name: str, other: str) -> None:
        self.key, self.place, self.other = joined(api, place, f"host:{name}"), place, other
        self.after = -1

    def asked(self, wait: int = 0) -> bool:
        query = {"wait": wait, "after": self.after}
        answer = self.key.get(f"{THREADS}/{self.place}/next", params=query)
        if answer.status_code == 200:
            self.after = answer.json()["seq"]
        return answer.status_code == 200

    def answers(self, kind: str) -> None:
        posted(self.key, self.place, "ping", type=kind, to=self.other)


def played(programs: list[Program], kind: str, most: int = 40) -> int:
    for count in range(most):
        program = programs[count % 2]
        if not program.asked():
            return count
        program.answers(kind)
    return most


@pytest.mark.parametrize("kind", ["message", "task"])
@pytest.mark.parametrize("where", PLACES)
def test_two_programs_that_ask_one_another_are_stopped_and_let_go_on(
    api: Api, where: str, kind: str
) -> None:
    place = PLACES[where](api)
    programs = [Program(api, place, *NAMES), Program(api, place, *reversed(NAMES))]
    for program in programs:
        while program.asked():  # the question of a council is for all
            pass
    posted(api, place, "start", to="pa")
    assert played(programs, kind) == 4
    [stopped] = [each for each in events(api, place) if "Stopped" in str(each["content"])]
    assert stopped["from"] == "moot" and "/continue" in stopped["content"]
    shown = read(api, place)
    assert (shown["floor"]["stopped"] if "floor" in shown else shown["stopped"]) == "pair"
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(programs[0].asked(wait=30)))
    waiting.start()
    assert steer(api, place, {"continue": True}).status_code == 200
    waiting.join(40)
    assert found == [True], "what was held back is asked"


def test_an_agent_does_not_let_itself_go_on(api: Api) -> None:
    place = convened(api, *NAMES, open=True)
    pa = joined(api, place, "host:pa")
    for _ in range(4):
        posted(pa, place, "ping", to="pb")
    assert read(api, place)["stopped"] == "pair"
    assert steer(pa, place, {"continue": True}).status_code == 403
    assert read(api, place)["stopped"] == "pair"
    posted(api, place, "Enough.")
    assert "stopped" not in read(api, place)
