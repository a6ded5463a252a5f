"""Entry point of the `jaxcoop` command: finds the sub-command, turns errors into one line."""

import os
import signal
import sys
from importlib import import_module

COMMANDS = {
    "list": ("jaxcoop.cli.listing", "environments, presets, agents"),
    "run": ("jaxcoop.cli.run", "play one configuration, write a run folder, print a table"),
    "paper": ("jaxcoop.cli.paper", "reproduce a published condition matrix with tables and figures"),
    "bench": ("jaxcoop.cli.bench", "measure throughput, scaling and planner calls"),
}

HELP = """usage: jaxcoop COMMAND [OPTIONS]

{commands}

jaxcoop COMMAND --help explains a command.  Examples:
  jaxcoop list                                             what there is
  jaxcoop run dining --episodes 100000                     random philosophers
  jaxcoop run dining --agent parity_ordering --preset sim_n5_nocomm
  jaxcoop run dining --model openai/gpt-4o-mini --episodes 20 --communication
  jaxcoop paper dpbench --dry-run --model openai/gpt-4o-mini
  jaxcoop bench throughput
"""

INTERRUPTED = 130  # exit status of a command stopped by Ctrl-C, by convention 128 + SIGINT


def main() -> None:
    """Run the command line in `sys.argv`; exit status 0, or another one after one line on stderr."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit status.

    JAXCOOP_TRACEBACK=1 in the environment shows the traceback of an error instead of one line.
    """
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt as stop:
        return _say(str(stop) or "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        return _say("out of memory; use a smaller --chunk or fewer agents", 1)
    except Exception as err:
        if os.environ.get("JAXCOOP_TRACEBACK"):
            raise
        return _say(_one_line(err), 2 if isinstance(err, ValueError) else 1)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(HELP.format(commands="\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())))
        return 0 if arguments else 2
    command, *rest = arguments
    if command == "--version":
        from jaxcoop import __version__

        print(f"jaxcoop {__version__}")
        return 0
    if command not in COMMANDS:
        from jaxcoop.core.registry import unknown

        raise unknown("command", command, COMMANDS)
    return import_module(COMMANDS[command][0]).main(rest) or 0


def _as_interrupt(*_: object) -> None:
    """A polite kill saves the run as Ctrl-C does."""
    raise KeyboardInterrupt


def _one_line(err: Exception) -> str:
    """What an error says, on one line; errors that users do not expect carry their type."""
    text = " ".join(str(err).split()) or type(err).__name__
    if "RESOURCE_EXHAUSTED" in text:
        return f"out of device memory; use a smaller --chunk or fewer agents ({text[:200]})"
    if isinstance(err, ValueError | RuntimeError | OSError) and not type(err).__name__.startswith(("Jax", "Xla")):
        return text
    return f"{type(err).__name__}: {text[:500]} (JAXCOOP_TRACEBACK=1 shows where)"


def _say(text: str, status: int) -> int:
    print(f"jaxcoop: {text}", file=sys.stderr)
    return status
