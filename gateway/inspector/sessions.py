"""Groups requests by their sessions, and those of a session by its agents, as the tree in which they began each other.

Sessions of two client keys are two, whatever ids they have.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.session import Source
from gateway.inspector.summary import Summary

# No client nests agents so deep; what lies deeper stands at the top again.
_DEEPEST: Final = 32

_Name: TypeAlias = tuple[str, Source, str]


class Figures(msgspec.Struct, frozen=True):
    """What some requests came to. `began` and `latest` are the Unix times at which the first and the last of them
    began; `turns` counts those that the client names, and tokens are those that are known."""

    requests: int
    live: int
    failed: int
    turns: int
    prompt_tokens: int
    completion_tokens: int
    began: float
    latest: float


class Agent(msgspec.Struct, frozen=True):
    """The requests of one agent and, apart, those of the agents that it began. `id` is empty for the agent that the
    user talks to; `figures` null: no request of it is here, only of an agent that names it. `words` are the first ones
    of the first of its requests that is known (empty: its contents are not kept)."""

    id: str
    figures: Figures | None = None
    agents: tuple["Agent", ...] = ()
    words: str = ""


class SessionTree(msgspec.Struct, frozen=True):
    """One session of one key: the figures of all its requests, and its agents. At the top stands the one that the user
    talks to, and beside it only those whose parents lead in a circle. `words` are those of its first request, and
    `client` is the program that sent the latest one."""

    key: str
    source: Source
    id: str
    figures: Figures
    agents: tuple[Agent, ...]
    words: str = ""
    client: str = ""

    def with_words(self, replaced: Callable[[str], str]) -> "SessionTree":
        """Returns the session with other words."""
        agents = tuple(_with_words(agent, replaced) for agent in self.agents)
        return msgspec.structs.replace(self, agents=agents, words=replaced(self.words))


def _with_words(agent: Agent, replaced: Callable[[str], str]) -> Agent:
    below = tuple(_with_words(one, replaced) for one in agent.agents)
    return msgspec.structs.replace(agent, agents=below, words=replaced(agent.words))


def session_trees(summaries: Iterable[Summary]) -> tuple[SessionTree, ...]:
    """Returns the sessions of these requests, the one with the latest request first. Requests whose session is not
    known are left out."""
    found: dict[_Name, list[Summary]] = {}
    for summary in summaries:
        if (session := summary.session) is not None:
            found.setdefault((summary.key, session.source, session.id), []).append(summary)
    trees = [
        SessionTree(*name, _figures(requests), _agents(requests), _first_words(requests), _client(requests))
        for name, requests in found.items()
    ]
    return tuple(sorted(trees, key=lambda tree: tree.figures.latest, reverse=True))


def _figures(requests: Sequence[Summary]) -> Figures:
    began = [one.began for one in requests]
    return Figures(
        len(requests),
        sum(one.live for one in requests),
        sum(bool(one.code) for one in requests),
        len({one.session.turn for one in requests if one.session is not None and one.session.turn}),
        sum(one.prompt_tokens or 0 for one in requests),
        sum(one.completion_tokens or 0 for one in requests),
        min(began),
        max(began),
    )


def _first_words(requests: Sequence[Summary]) -> str:
    said = [one for one in requests if one.asked.words]
    return min(said, key=lambda one: one.began).asked.words if said else ""


def _client(requests: Sequence[Summary]) -> str:
    named = [one for one in requests if one.client]
    return max(named, key=lambda one: one.began).client if named else ""


def _agents(requests: Sequence[Summary]) -> tuple[Agent, ...]:
    """Returns the agents that none of the others began, with those below them."""
    of_agent: dict[str, list[Summary]] = {}
    parents: dict[str, str] = {}
    for one in requests:
        if (session := one.session) is not None:
            of_agent.setdefault(session.agent, []).append(one)
            if session.agent:
                parents.setdefault(session.agent, session.parent)
    for parent in [*parents.values()]:
        if parent and parent not in parents:
            parents[parent] = ""
    if parents:
        of_agent.setdefault("", [])
    children: dict[str, list[str]] = {}
    for agent, parent in parents.items():
        children.setdefault(parent, []).append(agent)
    left = set(parents)
    top = [_agent("", of_agent, children, left, 0)] if "" in of_agent else []
    while left:
        # Whoever is left is above itself, or lies too deep.
        first = min(left)
        left.discard(first)
        top.append(_agent(first, of_agent, children, left, 0))
    return tuple(top)


def _agent(
    name: str,
    of_agent: Mapping[str, Sequence[Summary]],
    children: Mapping[str, Sequence[str]],
    left: set[str],
    depth: int,
) -> Agent:
    below: list[Agent] = []
    for child in sorted(children.get(name, ())) if depth < _DEEPEST else ():
        if child in left:
            left.discard(child)
            below.append(_agent(child, of_agent, children, left, depth + 1))
    requests = of_agent.get(name)
    if not requests:
        return Agent(name, None, tuple(below))
    return Agent(name, _figures(requests), tuple(below), _first_words(requests))
