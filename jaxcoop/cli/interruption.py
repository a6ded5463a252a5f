"""Ctrl-C and polite kills that cannot get lost.

Python raises KeyboardInterrupt wherever the main thread happens to be; inside a callback of a library it may be
printed and dropped.  So it is also noted, and a run looks for the note between its chunks.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator

_noted = threading.Event()


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Within it, SIGINT and SIGTERM raise KeyboardInterrupt and are noted; signals that are ignored stay ignored."""
    with contextlib.ExitStack() as stack:
        stack.callback(_noted.clear)
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    stack.callback(signal.signal, number, signal.signal(number, _note))
        yield


def _note(*_: object) -> None:
    _noted.set()
    raise KeyboardInterrupt


def check() -> None:
    """Raise KeyboardInterrupt in the main thread if a signal was noted and got lost."""
    if _noted.is_set() and threading.current_thread() is threading.main_thread():
        raise KeyboardInterrupt


def was_noted() -> bool:
    """Whether a signal came since `heard` was entered."""
    return _noted.is_set()
