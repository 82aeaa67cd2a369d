"""The commands of ``moot``, in the order of a first day."""

#: command -> its module below ``moot.cli``, and the first sentence of its help; with the sentence
#: here, ``moot --help`` imports no command
COMMANDS = {
    "demo": ("project.demo", "Seat a council of demo agents and watch it decide."),
    "init": ("project.init", "Make a project: agents, a workflow, a node, a tool, tests."),
    "serve": ("server.serve", "Run the server, on one database file, until Ctrl-C or SIGTERM."),
    "dev": (
        "server.dev",
        "Serve, and start again whenever moot.toml or a file of workflows, agents, nodes or"
        " tools changes.",
    ),
    "convene": (
        "councils.convene",
        "Put a question to a council of agents and follow it as they speak.",
    ),
    "ask": (
        "runs.ask",
        "Ask an agent one thing and read the answer as it comes; - reads the question from stdin.",
    ),
    "say": ("threads.say", "Say something in a thread; - reads it from stdin."),
    "wait": ("threads.say", "Wait until somebody is asked, and print what for."),
    "join": ("joining.join", "Let a program take part in a thread: it answers when it is asked."),
    "watch": (
        "runs.watch",
        "Follow a run, a council or a thread, over restarts of the server, too.",
    ),
    "run": ("runs.run", "Start a run of a workflow, or look after runs."),
    "fork": ("replay.fork", "Take a run up at one of its events, with something changed."),
    "replay": ("replay.replay", "Say a run again from its record, calling nothing."),
    "diff": ("replay.diff", "Compare two runs, event by event."),
    "tree": ("runs.tree", "Show the workers and the forks of a run, and theirs."),
    "why": ("runs.why", "Show what caused an event, back to the beginning."),
    "inbox": ("interrupts.inbox", "List what waits for a person, longest first."),
    "approve": ("interrupts.answer", "Approve what waits: a number of `moot inbox`, or a run."),
    "reject": ("interrupts.answer", "Reject what waits, or send it back with --refine."),
    "answer": (
        "interrupts.answer",
        "Answer a question that waits with TEXT, or say TEXT in a conversation.",
    ),
    "thread": ("threads.group", "Conversations: list, show, follow, steer, close, take along."),
    "search": ("threads.search", "Find threads, turns, decisions and runs by their words."),
    "flow": ("project.flow", "Workflows: list, show, check files, add files."),
    "agent": (
        "roster.agent",
        "Agents, and those of them that are on staff: standing agents with work of their own.",
    ),
    "schedule": ("schedules.schedule", "Schedules: have a workflow run at times to come."),
    "check": (
        "project.check",
        "Check moot.toml, agents, nodes, tools and workflows; or only these files and folders.",
    ),
    "test": ("project.test", "Run the tests with pytest."),
    "memory": ("roster.memory", "What is remembered: list, show, forget."),
    "models": ("project.models", "Models: list, add, test, remove; they are kept in moot.toml."),
    "tools": (
        "project.tools",
        "Tools: functions, HTTP addresses and MCP servers that agents may use.",
    ),
    "queue": ("triggers.queue", "Queues: what comes in becomes runs of a workflow."),
    "item": ("triggers.item", "Work that came in: list, push, show, redeliver, drop."),
    "hook": ("triggers.hook", "Webhooks that come in: somebody's server starts runs here."),
    "webhook": ("triggers.webhook", "Webhooks: tell somebody's server of what happens here."),
    "key": ("server.key", "Keys: create, list, revoke."),
    "db": ("server.db", "The database file: stats, backup, verify, rebuild."),
    "doctor": ("server.doctor", "Check the machine, the file and the server; print the settings."),
    "mcp": (
        "joining.mcp",
        "Serve threads to an assistant over MCP: list, read, say, wait, ask a person, start a run.",
    ),
    "api": ("server.api", "Call a route of the server and print its answer as it arrives."),
    "openapi": ("server.about", "Print the API's OpenAPI document."),
    "version": ("server.about", "Print the version."),
}
