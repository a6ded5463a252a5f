"""Entry point of the `jaxcoop` command: finds the sub-command, turns errors into one line.

Nothing heavy is imported here, so that Ctrl-C is answered from the start.
"""

import contextlib
import errno
import io
import os
import signal
import sys
from importlib import import_module
from types import ModuleType

from jaxcoop.cli.interruption import heard, was_noted

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

_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
INTERRUPTED = 130  # exit status of a command stopped by Ctrl-C, by convention 128 + SIGINT


def main() -> None:
    """Run the command line in `sys.argv`; exit status 0, or another one after one line on stderr."""
    _mend_streams()
    status = run(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # everything is said and saved: a second Ctrl-C just ends
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run a command line; returns the exit status.

    JAXCOOP_TRACEBACK=1 in the environment shows the traceback of an error instead of one line.
    """
    with heard():
        status = _guarded(arguments)
    if reason := _output_failure():
        return status or _say(reason, 1)
    return status


def _guarded(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except KeyboardInterrupt as stop:
        return _say(str(stop) or "interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has gone, e.g. `| head`
        _discard_output()
        return 0
    except MemoryError:
        return _say("out of memory; use a smaller --chunk or fewer agents", 1)
    except Exception as err:
        if os.environ.get("JAXCOOP_TRACEBACK"):
            raise
        if was_noted():  # a library made an error of its own out of it
            return _say("interrupted", INTERRUPTED)
        return _say(_one_line(err), 2 if isinstance(err, ValueError) else 1)


def _mend_streams() -> None:
    """Standard streams that were closed lead nowhere; characters a stream cannot show become `?`."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:  # a file opened later must not get its number: what libraries print would go there
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _output_failure() -> str | None:
    """Why what was printed cannot be written, if it cannot; it is thrown away then."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # its reader wants no more of it
        _discard_output()
    except OSError as err:
        _discard_output()
        return _one_line(err)
    return None


def _discard_output() -> None:
    """Nobody can read the standard output; without this, Python would try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
    return _load(COMMANDS[command][0]).main(rest) or 0


def _load(module: str) -> ModuleType:
    """Import a sub-command and the environments.  Ctrl-C ends the process there and then: there is nothing to save yet,
    and libraries that are half imported may take an interruption for a failure of their own, or drop it."""
    with contextlib.ExitStack() as stack:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                stack.callback(signal.signal, number, signal.signal(number, _end))
        loaded = import_module(module)
        import_module("jaxcoop.core.registry").list_envs()
        return loaded


def _end(*_: object) -> None:
    os.write(2, b"jaxcoop: interrupted\n")
    os._exit(INTERRUPTED)


def _one_line(err: Exception) -> str:
    """What an error says, on one line; errors that users do not expect carry their type."""
    text = " ".join(str(err).split()) or type(err).__name__
    if "RESOURCE_EXHAUSTED" in text:
        return f"out of device memory; use a smaller --chunk or fewer agents ({text[:200]})"
    if isinstance(err, OSError) and err.strerror and (err.filename or err.errno in _WRITING):
        reason = err.strerror[:1].lower() + err.strerror[1:]
        return f"{err.filename}: {reason}" if err.filename else f"cannot write the output: {reason}"
    if isinstance(err, ValueError | RuntimeError | OSError) and not type(err).__name__.startswith(("Jax", "Xla")):
        return text
    return f"{type(err).__name__}: {text[:500]} (JAXCOOP_TRACEBACK=1 shows where)"


def _say(text: str, status: int) -> int:
    print(f"jaxcoop: {text}", file=sys.stderr)
    return status
