"""The ``moot`` command line.

A command's module is imported only when it runs, so that help is quick.
"""

import gc
import os
import sys
from importlib import import_module

import click

from moot import __version__
from moot.cli.command_table import COMMANDS
from moot.cli.shared import output
from moot.cli.shared.errors import CommandError, ExitCode

#: allocations before a garbage collection: imports allocate much and leave no garbage
STARTUP_ALLOCATIONS = 200_000


class OrderedGroup(click.Group):
    """List commands in the order of a first day, and suggest the nearest for a typo.

    The module of a command is imported when the command is looked up.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"moot.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=summary).get_short_help_str(limit))
                    for name, (_, summary) in COMMANDS.items()
                ]
            )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS:
            from moot.core.text.nearest import nearest_word

            suggestion = nearest_word(args[0], COMMANDS)
            hint = f" Did you mean '{suggestion}'?" if suggestion else ""
            ctx.fail(f"there is no command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=OrderedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s", prog_name="moot")
@click.pass_context
def moot(ctx: click.Context) -> None:
    """Moot: durable workflows in one file, an OpenWOP v1 host.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 timed out, 4 waiting for a human, 5 not found,
    6 no server.
    """
    from moot.config.settings import client_environment

    if client_environment().get("NO_COLOR"):
        ctx.color = False


def main() -> None:
    gc.set_threshold(STARTUP_ALLOCATIONS)
    try:
        sys.exit(moot.main(standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as no_arguments:
        click.echo(no_arguments.format_message())
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "moot"
        _fail(error, f"{error.format_message()} See: {path} --help", ExitCode.USAGE)
    except click.ClickException as error:
        _fail(error, error.format_message(), ExitCode.FAILED)
    except CommandError as error:
        _fail(error, str(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(ExitCode.FAILED)
    except Exception as error:
        sentence = f"something went wrong that should not: {type(error).__name__}: {error}."
        _fail(error, f"{sentence} MOOT_DEBUG=1 shows where.", ExitCode.FAILED)


def _fail(error: Exception, sentence: str, code: ExitCode) -> None:
    from moot.config.settings import client_environment

    if client_environment().get("MOOT_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    output.print_error(f"error: {sentence}")
    sys.exit(code)
