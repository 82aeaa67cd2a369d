"""``moot test``: run pytest with the demo model and without a network."""

import importlib.util
import subprocess
import sys

import click

from moot.cli.shared.errors import CommandError, ExitCode
from moot.config.extras import install_hint

PLUGIN = "moot.testing.plugin"
#: exit codes of pytest that do not mean a failed test
NO_TESTS, INTERRUPTED = 5, 2
ANYTHING = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=ANYTHING)
@click.option("--record", is_flag=True, help="Ask the models and record their answers.")
@click.argument("arguments", nargs=-1, metavar="[PYTEST ARGUMENTS]...", type=click.UNPROCESSED)
def test(record: bool, arguments: tuple[str, ...]) -> ExitCode:
    """Run the tests with pytest. Connections that leave this machine are refused.

    Everything after the options is pytest's: moot test -k brief -x
    """
    if importlib.util.find_spec("pytest") is None:
        raise CommandError(f"pytest is not installed here; get it with: {install_hint('test')}")
    mode = "--moot-record" if record else "--moot-offline"
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, mode, *arguments]
    code = subprocess.run(command, check=False).returncode
    if code == NO_TESTS:
        raise CommandError("there are no tests here; write tests/test_*.py.", ExitCode.NOT_FOUND)
    if code == INTERRUPTED:
        raise click.Abort
    return ExitCode.OK if code == 0 else ExitCode.FAILED
