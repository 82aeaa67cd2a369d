"""The commands of ``moot``, in the order of a first day."""

from typing import NamedTuple


class CommandEntry(NamedTuple):
    """The module of a command, and the first sentence of its help.

    With the sentence here, ``moot --help`` imports no command.
    """

    module: str
    summary: str


COMMANDS = {
    "demo": CommandEntry(
        "moot.cli.project.demo", "Seat a council of demo agents and watch it decide."
    ),
    "init": CommandEntry(
        "moot.cli.project.init", "Make a project: agents, a workflow, a node, a tool, tests."
    ),
    "serve": CommandEntry(
        "moot.cli.server.serve", "Run the server, on one database file, until Ctrl-C or SIGTERM."
    ),
    "dev": CommandEntry(
        "moot.cli.server.dev",
        "Serve, and start again whenever moot.toml or a file of workflows, agents, nodes or tools"
        " changes.",
    ),
    "convene": CommandEntry(
        "moot.cli.councils.convene",
        "Put a question to a council of agents and follow it as they speak.",
    ),
    "ask": CommandEntry(
        "moot.cli.runs.ask",
        "Ask an agent one thing and read the answer as it comes; - reads the question from stdin.",
    ),
    "say": CommandEntry(
        "moot.cli.threads.say", "Say something in a thread; - reads it from stdin."
    ),
    "wait": CommandEntry(
        "moot.cli.threads.say", "Wait until somebody is asked, and print what for."
    ),
    "join": CommandEntry(
        "moot.cli.joining.join", "Let a program take part in a thread: it answers when it is asked."
    ),
    "watch": CommandEntry(
        "moot.cli.runs.watch",
        "Follow a run, a council or a thread, over restarts of the server, too.",
    ),
    "run": CommandEntry("moot.cli.runs.run", "Start a run of a workflow, or look after runs."),
    "fork": CommandEntry(
        "moot.cli.replay.fork", "Take a run up at one of its events, with something changed."
    ),
    "replay": CommandEntry(
        "moot.cli.replay.replay", "Say a run again from its record, calling nothing."
    ),
    "diff": CommandEntry("moot.cli.replay.diff", "Compare two runs, event by event."),
    "tree": CommandEntry(
        "moot.cli.runs.tree", "Show the workers and the forks of a run, and theirs."
    ),
    "why": CommandEntry("moot.cli.runs.why", "Show what caused an event, back to the beginning."),
    "inbox": CommandEntry(
        "moot.cli.interrupts.inbox", "List what waits for a person, longest first."
    ),
    "approve": CommandEntry(
        "moot.cli.interrupts.answer", "Approve what waits: a number of `moot inbox`, or a run."
    ),
    "reject": CommandEntry(
        "moot.cli.interrupts.answer", "Reject what waits, or send it back with --refine."
    ),
    "answer": CommandEntry(
        "moot.cli.interrupts.answer",
        "Answer a question that waits with TEXT, or say TEXT in a conversation.",
    ),
    "thread": CommandEntry(
        "moot.cli.threads.group", "Conversations: list, show, follow, steer, close, take along."
    ),
    "search": CommandEntry(
        "moot.cli.threads.search", "Find threads, turns, decisions and runs by their words."
    ),
    "flow": CommandEntry("moot.cli.project.flow", "Workflows: list, show, check files, add files."),
    "agent": CommandEntry(
        "moot.cli.roster.agent",
        "Agents, and those of them that are on staff: standing agents with work of their own.",
    ),
    "schedule": CommandEntry(
        "moot.cli.schedules.schedule", "Schedules: have a workflow run at times to come."
    ),
    "check": CommandEntry(
        "moot.cli.project.check",
        "Check moot.toml, agents, nodes, tools and workflows; or only these files and folders.",
    ),
    "test": CommandEntry("moot.cli.project.test", "Run the tests with pytest."),
    "memory": CommandEntry("moot.cli.roster.memory", "What is remembered: list, show, forget."),
    "models": CommandEntry(
        "moot.cli.project.models", "Models: list, add, test, remove; they are kept in moot.toml."
    ),
    "tools": CommandEntry(
        "moot.cli.project.tools",
        "Tools: functions, HTTP addresses and MCP servers that agents may use.",
    ),
    "queue": CommandEntry(
        "moot.cli.triggers.queue", "Queues: what comes in becomes runs of a workflow."
    ),
    "item": CommandEntry(
        "moot.cli.triggers.item", "Work that came in: list, push, show, redeliver, drop."
    ),
    "hook": CommandEntry(
        "moot.cli.triggers.hook", "Webhooks that come in: somebody's server starts runs here."
    ),
    "webhook": CommandEntry(
        "moot.cli.triggers.webhook", "Webhooks: tell somebody's server of what happens here."
    ),
    "key": CommandEntry("moot.cli.server.key", "Keys: create, list, revoke."),
    "db": CommandEntry("moot.cli.server.db", "The database file: stats, backup, verify, rebuild."),
    "doctor": CommandEntry(
        "moot.cli.server.doctor", "Check the machine, the file and the server; print the settings."
    ),
    "mcp": CommandEntry(
        "moot.cli.joining.mcp",
        "Serve threads to an assistant over MCP: list, read, say, wait, ask a person, start a run.",
    ),
    "api": CommandEntry(
        "moot.cli.server.api", "Call a route of the server and print its answer as it arrives."
    ),
    "openapi": CommandEntry("moot.cli.server.about", "Print the API's OpenAPI document."),
    "version": CommandEntry("moot.cli.server.about", "Print the version."),
}
