"""``moot api``: call any route of the server with the usual key."""

import json
from collections.abc import Iterator

import click

from moot.cli.shared import output
from moot.cli.shared.client import ServerTransport, ServerUnreachable, raw_request
from moot.cli.shared.errors import ExitCode
from moot.cli.shared.inputs import read_text
from moot.cli.shared.options import CommandOptions, resolve_place, server_options
from moot.client.http.attempts import ConnectionLost
from moot.client.http.stdlib_transport import StdlibAnswer

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")


@click.command()
@click.argument("method", type=click.Choice(METHODS, case_sensitive=False))
@click.argument("path")
@click.option("-d", "--data", metavar="BODY", help="The body; @file reads one, - reads stdin.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME: VALUE")
@click.option("-i", "--include", is_flag=True, help="Print status and headers, too.")
@server_options
def api(
    options: CommandOptions,
    method: str,
    path: str,
    data: str | None,
    headers: tuple[str, ...],
    include: bool,
) -> ExitCode:
    """Call a route of the server and print its answer as it arrives.

    \b
    moot api GET /v1/host/moot/runs
    moot api POST /v1/runs -d '{"workflowId": "hello"}'
    """
    if data is not None and (data == "-" or data.startswith("@")):
        data = read_text(data.removeprefix("@"))
    body = None if data is None else data.encode()
    place = resolve_place(options)
    path = path if path.startswith("/") else f"/{path}"
    request_headers = {"Accept": "*/*", **dict(_parse_header(text) for text in headers)}
    request = raw_request(place, method.upper(), path, body, request_headers)
    try:
        with ServerTransport(place).open(request) as answer:
            if include:
                click.echo(output.safe_lines(answer.head), nl=False)
            _print_body(answer)
            if answer.status < 400:
                return ExitCode.OK
            return ExitCode.NOT_FOUND if answer.status == 404 else ExitCode.FAILED
    except ConnectionLost as lost:
        raise ServerUnreachable(place, str(lost).lower()) from lost


def _print_body(answer: StdlibAnswer) -> None:
    is_json = "json" in answer.headers.get("content-type", "")
    if is_json and output.on_terminal():
        _print_json_body(b"".join(answer.pieces()))
        return
    for line in _split_lines(answer.pieces()):
        output.write_bytes(line)
    if is_json:
        click.echo()


def _split_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines, so that no character is cut."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).splitlines(keepends=True) or [b""]
        if rest.endswith(b"\n"):
            lines, rest = [*lines, rest], b""
        yield from lines
    if rest:
        yield rest


def _parse_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError(f"-H '{text}': write NAME: VALUE.")
    return name.strip(), value.strip()


def _print_json_body(body: bytes) -> None:
    try:
        output.print_json(json.loads(body))
    except ValueError:
        output.write_bytes(body + b"\n")
