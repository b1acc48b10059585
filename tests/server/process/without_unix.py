"""Runs a module with the arguments of the command line, after it has removed what Python lacks on Windows."""

import asyncio.selector_events
import asyncio.unix_events
import os
import runpy
import select
import signal
import socket
import sys
import time
from types import ModuleType

MODULES = ("fcntl", "grp", "pwd", "resource", "termios", "uvloop")
# What the documentation of Python says of each: not available on Windows.
NAMES: dict[ModuleType | type, tuple[str, ...]] = {
    os: (
        *("fork", "forkpty", "register_at_fork", "WNOHANG", "WIFEXITED", "killpg", "setsid", "getpgid", "wait"),
        *("getuid", "geteuid", "getgid", "getegid", "chown", "fchown", "lchown", "uname", "nice", "getloadavg"),
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_NOCTTY"),
        *("pread", "preadv", "pwrite", "pwritev", "sendfile", "fdatasync", "posix_fallocate", "posix_fadvise"),
        *("statvfs", "sysconf", "pathconf", "mkfifo", "sched_getaffinity", "sched_yield", "getxattr"),
    ),
    select: ("epoll", "poll", "POLLIN", "POLLRDHUP"),
    signal: (
        *("SIGHUP", "SIGQUIT", "SIGCHLD", "SIGKILL", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCONT"),
        *("SIG_BLOCK", "SIG_UNBLOCK", "pthread_sigmask", "pthread_kill", "sigwait", "alarm", "setitimer", "pause"),
    ),
    socket: ("SO_REUSEPORT", "CMSG_LEN", "MSG_DONTWAIT", "MSG_NOSIGNAL", "send_fds", "recv_fds"),
    time: ("clock_gettime", "clock_getres", "CLOCK_MONOTONIC", "CLOCK_REALTIME", "tzset"),
    asyncio: ("start_unix_server", "open_unix_connection"),
    asyncio.unix_events._UnixSelectorEventLoop: (
        *("add_signal_handler", "remove_signal_handler", "create_unix_server", "create_unix_connection"),
    ),
    asyncio.selector_events.BaseSelectorEventLoop: ("add_reader", "add_writer"),
}


def remove() -> None:
    """Removes the names from this process."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # so an import of it fails
    for place, names in NAMES.items():
        for name in names:
            delattr(place, name)
    if sys.version_info >= (3, 13):
        # What os defines where the system has no sched_getaffinity; pools of threads call it.
        os.process_cpu_count = os.cpu_count


if __name__ == "__main__":
    remove()
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=False)
