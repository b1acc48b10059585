"""Tests how requests are grouped by session, and those of a session by its agents."""

from typing import Final

import msgspec

from gateway.core.session import Session
from gateway.inspector.asked import Asked
from gateway.inspector.sessions import Agent, SessionTree, session_trees
from gateway.inspector.summary import Summary

SUMMARY: Final = Summary(
    1, "r", 1.0, "POST", "/v1/messages", "anthropic_messages", "alice", "m", "b", False, 5.0, 200, prompt_tokens=10,
    completion_tokens=2,
)  # fmt: skip


def request(
    at: float, agent: str = "", parent: str = "", key: str = "alice", name: str = "s1", **fields: str
) -> Summary:
    session = Session("codex", name, agent, parent, fields.pop("turn", ""))
    return msgspec.structs.replace(SUMMARY, began=at, key=key, session=session, **fields)


def shape(agents: tuple[Agent, ...]) -> object:
    """The ids and counts of a tree."""
    return [(one.id, one.figures and one.figures.requests, shape(one.agents)) for one in agents]


def test_a_session_is_one_of_its_key() -> None:
    trees = session_trees([request(2), request(3, key="bob"), request(1), request(4, name="s2"), SUMMARY])
    assert [(tree.key, tree.id, tree.figures.requests) for tree in trees] == [
        ("alice", "s2", 1),
        ("bob", "s1", 1),
        ("alice", "s1", 2),
    ]


def test_figures_are_those_of_all_agents() -> None:
    (tree,) = session_trees(
        [request(5, turn="t2"), request(3, "a1", turn="t1", code="upstream_timeout"), request(2, turn="t1")]
    )
    figures = tree.figures
    assert (figures.requests, figures.failed, figures.live, figures.turns) == (3, 1, 0, 2)
    assert (figures.prompt_tokens, figures.completion_tokens, figures.began, figures.latest) == (30, 6, 2, 5)


def test_a_session_and_its_agents_are_known_by_their_first_words() -> None:
    requests = [
        msgspec.structs.replace(request(at, agent), asked=Asked(words), client=client)
        for at, agent, words, client in (
            (5, "", "Now the last one", "Codex 2"),
            (4, "a1", "Read it again", "Codex 2"),
            (3, "a1", "Read it", ""),
            (2, "", "Do it", "Codex 1"),
            (1, "", "", ""),
        )
    ]
    (tree,) = session_trees(requests)
    (main,) = tree.agents
    assert (tree.words, tree.client, main.words, main.agents[0].words) == ("Do it", "Codex 2", "Do it", "Read it")
    hidden = tree.with_words(lambda words: "x" * len(words))
    assert (hidden.words, hidden.agents[0].agents[0].words) == ("xxxxx", "xxxxxxx") and hidden.figures == tree.figures


def test_agents_stand_below_those_that_began_them() -> None:
    (tree,) = session_trees([request(1), request(2, "a1"), request(3, "a2", "a1"), request(4, "a2", "a1"), request(5)])
    assert shape(tree.agents) == [("", 2, [("a1", 1, [("a2", 2, [])])])]


def test_an_agent_of_which_no_request_is_here_has_its_place() -> None:
    (tree,) = session_trees([request(1, "a2", "a1")])
    assert shape(tree.agents) == [("", None, [("a1", None, [("a2", 1, [])])])]


def trees_of(*parents: tuple[str, str]) -> tuple[SessionTree, ...]:
    return session_trees(request(at, agent, parent) for at, (agent, parent) in enumerate(parents, 1))


def test_a_circle_of_parents_loses_nobody() -> None:
    (tree,) = trees_of(("a", "b"), ("b", "a"), ("c", "c"), ("d", ""))
    assert shape(tree.agents) == [("", None, [("d", 1, [])]), ("a", 1, [("b", 1, [])]), ("c", 1, [])]


def test_a_deep_chain_loses_nobody() -> None:
    (tree,) = trees_of(*((f"a{at}", f"a{at - 1}" if at else "") for at in range(2000)))

    def count(agents: tuple[Agent, ...]) -> int:
        return sum(1 + count(agent.agents) for agent in agents)

    assert count(tree.agents) == 2001
