"""What every test shares: its tier, how hypothesis runs, what the garbage collector looks at, the trusted certificates,
and the option that rewrites golden files."""

import contextlib
import functools
import gc
import importlib
import os
import signal
import ssl
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.tiers import TIERS, Tier, chosen

# Whoever runs the tests in the background has made them, and what they start, deaf to SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A shared machine is slow at random moments: only the number of examples bounds a law.
settings.register_profile("first", deadline=None, max_examples=25)
settings.register_profile("full", deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("first")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="rewrite the expected files in tests/golden from what is"
    )
    parser.addoption(
        "--tier",
        choices=TIERS,
        default="first",
        help="the tests that run: those of the first tier (the default), the rest (full), or all of them",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A law has its full number of examples outside the first tier, before a profile that the command line names."""
    if config.getoption("--tier") != "first":
        settings.load_profile("full")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Collect without garbage collections: what is collected stays."""
    gc.disable()
    if worker := getattr(session.config, "workerinput", None):
        _import_by_turns(session.config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])


def _import_by_turns(config: pytest.Config, number: int, count: int) -> None:
    """Import each n-th module of the tests. Processes that begin at the same time would each rewrite the assertions of
    all modules; so each writes the bytecode of its part, and reads that of the others."""
    modules = sorted(path for argument in config.args for path in (config.rootpath / argument).rglob("test_*.py"))
    for module in modules[number::count]:
        # Collection imports it again, and reports what that raises.
        with contextlib.suppress(Exception):
            importlib.import_module(".".join(module.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of the tier; golden files are rewritten by all, or some would be left as they were."""
    tier: Tier = "all" if config.getoption("--rewrite-golden") else config.getoption("--tier")
    items[:], others = chosen(items, tier)
    config.hook.pytest_deselected(items=others)


def pytest_collection_finish() -> None:
    """Keep the collected tests out of every later garbage collection: they live as long as the process."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No gateway of a test has its key in the folder of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(tmp_path_factory.mktemp("state")))
        patch.delenv("STATE_DIRECTORY", raising=False)
        yield


@pytest.fixture(scope="session")
def rewrite_golden(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--rewrite-golden"))


@pytest.fixture(scope="session", autouse=True)
def bytecode_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A hundred processes are started here. Where Python may not write bytecode, each of them would compile all it
    imports, which takes longer than the rest of its start; they have a folder for it."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.dont_write_bytecode:
            patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """Every HTTP client reads the trusted certificates, which takes longer than most tests; thousands are made here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield
