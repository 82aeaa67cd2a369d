"""Count the processor instructions of a request with valgrind; other load does not move them."""

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from bench import runs, turns
from bench.lab import Lab, Server, node, register

#: the count of the first is taken off the count of the second, and with it the start of the server
FEW, MANY = 200, 700
#: a server under valgrind is about forty times as slow
PATIENCE_S = 600
CLIENTS = 16

#: sets the server up and sends this many requests
Load = Callable[[Server, int], None]


def count(lab: Lab, trees: list[Path]) -> dict[str, list[float]]:
    """Return load -> thousands of instructions of one request, for each tree."""
    if shutil.which("valgrind") is None:
        raise SystemExit("Install valgrind to count instructions: apt install valgrind")
    for tree in trees:
        lab.moot(source=tree).stop()  # the first start compiles the modules
    return {
        name: [(_total(lab, tree, load, MANY) - _total(lab, tree, load, FEW)) / (MANY - FEW) / 1000
               for tree in trees]
        for name, load in LOADS.items()
    }  # fmt: skip


def _total(lab: Lab, tree: Path, load: Load, requests: int) -> int:
    """Return the instructions of a server from its start until it has answered the requests."""
    report = lab.path("cachegrind.out")
    wrapper = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no"]
    server = lab.moot(source=tree, wrapper=[*wrapper, f"--cachegrind-out-file={report}"])
    try:
        load(server, requests)
    finally:
        server.stop(PATIENCE_S)
    summary = re.search(r"^summary: (\d+)", report.read_text(), re.MULTILINE)
    assert summary is not None, "valgrind wrote no summary"
    return int(summary[1])


def _turns(server: Server, requests: int) -> None:
    turns.register_conversation(server)
    path = turns.open_conversation(server)
    asked = {"clients": CLIENTS, "seconds": PATIENCE_S, "most": requests}
    server.drive("turns", **asked, paths=[path], bodies=turns.bodies())


def _runs(server: Server, requests: int) -> None:
    register(server, "bench-noop", [node("noop", "core.noop")])
    asked = {"clients": CLIENTS, "seconds": PATIENCE_S, "most": requests}
    server.drive("runs", **asked, body=runs.BODY)


LOADS: dict[str, Load] = {"plain turn": _turns, "noop run": _runs}


def main() -> None:
    """``python -m bench.instructions TREE…``: this tree first, then the others."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="moot-bench-") as folder:
        lab = Lab(Path(folder), quick=True)
        trees = [lab.source, *(Path(name).resolve() for name in sys.argv[1:])]
        for name, counts in count(lab, trees).items():
            shares = [f"{one:,.0f} ({counts[0] / one:.2f})" for one in counts]
            print(f"{name}, thousand instructions: {', '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
