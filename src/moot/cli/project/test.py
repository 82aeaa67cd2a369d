"""``moot test``: pytest, with the demo model and without a network."""

import importlib.util
import subprocess
import sys

import click

from moot.cli.shared.errors import Exit, Trouble
from moot.config.extras import install

PLUGIN = "moot.testing.plugin"
#: what pytest means by its exit code, where it is no failed test
NO_TESTS, INTERRUPTED = 5, 2
ANYTHING = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(context_settings=ANYTHING)
@click.option("--record", is_flag=True, help="Ask the models and record their answers.")
@click.argument("arguments", nargs=-1, metavar="[PYTEST ARGUMENTS]...", type=click.UNPROCESSED)
def test(record: bool, arguments: tuple[str, ...]) -> Exit:
    """Run the tests with pytest. Connections that leave this machine are refused.

    Everything after the options is pytest's: moot test -k brief -x
    """
    if importlib.util.find_spec("pytest") is None:
        raise Trouble(f"pytest is not installed here; get it with: {install('test')}")
    mode = "--moot-record" if record else "--moot-offline"
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, mode, *arguments]
    code = subprocess.run(command, check=False).returncode
    if code == NO_TESTS:
        raise Trouble("there are no tests here; write tests/test_*.py.", Exit.NOT_FOUND)
    if code == INTERRUPTED:
        raise click.Abort
    return Exit.OK if code == 0 else Exit.FAILED
