"""Runs a module with the arguments of the command line, after it has removed what Python lacks on Windows."""

import asyncio.unix_events
import os
import runpy
import select
import signal
import socket
import sys

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "uvloop")
NAMES = {
    os: ("fork", "getuid", "register_at_fork", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "WNOHANG"),
    select: ("epoll", "poll", "POLLIN", "POLLRDHUP"),
    signal: ("SIGHUP", "SIGQUIT", "SIGCHLD", "SIG_BLOCK", "SIG_UNBLOCK", "pthread_sigmask"),
    socket: ("SO_REUSEPORT",),
    asyncio.unix_events._UnixSelectorEventLoop: ("add_signal_handler", "remove_signal_handler"),
}


def remove() -> None:
    """Removes the names from this process."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # so an import of it fails
    for place, names in NAMES.items():
        for name in names:
            delattr(place, name)


if __name__ == "__main__":
    remove()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=False)
