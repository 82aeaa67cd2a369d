"""``moot api``: any route of the server, with the key found by itself."""

import json

import click

from moot.cli.shared import output
from moot.cli.shared.client import SECONDS, Client
from moot.cli.shared.errors import Exit
from moot.cli.shared.inputs import read
from moot.cli.shared.options import Options, place, talks

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


@click.command()
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-d", "--data", metavar="BODY", help="The body; @file reads one, - reads stdin.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME: VALUE")
@click.option("-i", "--include", is_flag=True, help="Print status and headers, too.")
@talks
def api(
    options: Options,
    method: str,
    path: str,
    data: str | None,
    headers: tuple[str, ...],
    include: bool,
) -> Exit:
    """Call a route of the server and print its answer as it arrives.

    \b
    moot api GET /v1/host/moot/runs
    moot api POST /v1/runs -d '{"workflowId": "hello"}'
    """
    body = None if data is None else _body(data).encode()
    client = Client(place(options))
    path = path if path.startswith("/") else f"/{path}"
    given = {"Accept": "*/*", **dict(_header(text) for text in headers)}
    with client.opened(method.upper(), path, body, given, SECONDS) as answer:
        if include:
            head = f"HTTP/1.1 {answer.status} {answer.reason}\n{answer.headers}"
            click.echo(output.lines(head), nl=False)
        json_body = "json" in answer.headers.get("Content-Type", "")
        if json_body and output.on_terminal():
            _pretty(answer.read())
        else:
            for line in answer:
                output.write(line)
            if json_body:
                click.echo()
        return _exit_of(answer.status)


def _body(data: str) -> str:
    if data == "-" or data.startswith("@"):
        return read(data.removeprefix("@"))
    return data


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError(f"-H '{text}': write NAME: VALUE.")
    return name.strip(), value.strip()


def _pretty(body: bytes) -> None:
    try:
        output.show_json(json.loads(body))
    except ValueError:
        output.write(body + b"\n")


def _exit_of(status: int) -> Exit:
    if status < 400:
        return Exit.OK
    return Exit.NOT_FOUND if status == 404 else Exit.FAILED
