"""What the tests of bundles share: taking them out, in, apart, and putting them together again."""

import hashlib
import json
import time
from typing import Any

import httpx2 as httpx

from tests.support.api.caller import Api
from tests.support.api.councils import THREADS, export, run_of


def bundle_of(api: Api, thread: str) -> bytes:
    return export(api, thread, "bundle").content


def take_in(api: Api, bundle: bytes, **more: Any) -> httpx.Response:
    return api.post(f"{THREADS}:import", bundle, **more)


def rows_of(bundle: bytes) -> list[bytes]:
    return bundle.rstrip(b"\n").split(b"\n")


def remade(lines: list[bytes], rename: bool = False) -> bytes:
    """The lines as a bundle whose digest fits, as a forger would write it."""
    rows = lines[1:-1]
    digest = hashlib.sha256(b"".join(row + b"\n" for row in rows)).hexdigest()
    end = json.dumps({"events": len(rows), "sha256": digest}).encode()
    return b"\n".join([lines[0], *rows, end]) + b"\n"


def altered(row: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(row), **fields}).encode()


def fresh(api: Api, bundle: bytes, told: str) -> bytes:
    """The same bundle under another run id: each may come in once."""
    name = f"run_copy{time.monotonic_ns()}"
    return remade([line.replace(run_of(told).encode(), name.encode()) for line in rows_of(bundle)])
