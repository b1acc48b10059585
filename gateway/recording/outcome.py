"""Says what a run came to, and how two runs differ: what a redacted or smaller recording must not change."""

from itertools import zip_longest
from typing import Final

import msgspec

from gateway.core.notices import HIDDEN_ROUNDS
from gateway.recording.offline_run import OfflineRun
from gateway.recording.recording import Interaction

# The stages whose notices are about the answer.
_OF_ANSWERS: Final = ("backend", "unwrap")


class Outcome(msgspec.Struct, frozen=True):
    """The faults of the client's messages (rule, index), the notices (rule, index, action), the kinds of the events,
    and the status and the code of the answer."""

    violations: tuple[tuple[str, int], ...]
    notices: tuple[tuple[str, int | None, str], ...]
    events: tuple[str, ...]
    status: int
    code: str


def outcome_of(run: OfflineRun) -> Outcome:
    """Returns the outcome of a run."""
    return Outcome(
        tuple((one.rule, one.index) for one in run.violations),
        tuple((one.rule, one.index, one.action) for one in run.notices),
        tuple(type(event).__name__ for events in run.events for event in events),
        run.status,
        run.code,
    )


def differences(before: Outcome, after: Outcome) -> tuple[str, ...]:
    """Returns one sentence for each part that differs, with the first difference in it."""
    found: list[str] = []
    for name in ("violations", "notices", "events"):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            pairs = enumerate(zip_longest(old, new))
            at, (was, now) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
            found.append(
                f"{name}: number {at + 1} was {_shown(was)}, now {_shown(now)} ({len(old)} before, {len(new)})"
            )
    if (before.status, before.code) != (after.status, after.code):
        was, now = (f"{one.status} {one.code or 'without error'}" for one in (before, after))
        found.append(f"outcome: was {was}, now {now}")
    return tuple(found)


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return " ".join(str(part) for part in value) if isinstance(value, tuple) else str(value)


class Check(msgspec.Struct, frozen=True):
    """One line of a comparison: what it is, in numbers, and the first difference, empty for none."""

    subject: str
    size: str
    difference: str = ""


def compare_to_recorded(interaction: Interaction, run: OfflineRun) -> tuple[Check, ...]:
    """Compares a run with what was recorded: notices, the bytes that were sent, the bytes of the answer, the outcome. A
    part that is not in the recording is left out, also what followed a gap in the answer; and one that the gateway's
    state had a part in is not compared."""
    found = (_notices(interaction, run), _sent(interaction, run), _answer(interaction, run), _status(interaction, run))
    checks = (check for check in found if check is not None)
    return tuple(_unlike(check) if run.compacts or _has_state(interaction, check) else check for check in checks)


def _has_state(interaction: Interaction, check: Check) -> bool:
    """Returns whether a part may differ because a run has nothing of the gateway's state: every part of a request that
    state was put into, and of any other an answer that quotes the notices of the state, or that was not stored."""
    if interaction.route is not None and interaction.route.state:
        return True
    stated = [notice for notice in interaction.notices if notice.stage == "state"]
    return check.subject == "answer" and any(interaction.explains or notice.action == "failed" for notice in stated)


def _unlike(check: Check) -> Check:
    return Check(check.subject, f"{check.size}, made with state of the gateway: not compared")


def _notices(interaction: Interaction, run: OfflineRun) -> Check:
    # Those of the state tell what was kept of earlier requests, and those of an answer need all of its bytes.
    stages = {"state", *(_OF_ANSWERS if interaction.gaps else ())}
    rounds = HIDDEN_ROUNDS if interaction.gaps else frozenset()
    recorded, now = (
        [
            (one.stage, one.rule, one.index, one.action)
            for one in notices
            if one.stage not in stages and (one.rule, one.action) not in rounds
        ]
        for notices in (interaction.notices, run.notices)
    )
    difference = ""
    if recorded != now:
        was, new = next(pair for pair in zip_longest(recorded, now) if pair[0] != pair[1])
        difference = f"was {_shown(was)}, now {_shown(new)}"
    return Check("request", f"notices: {len(recorded)}", difference)


def _sent(interaction: Interaction, run: OfflineRun) -> Check | None:
    sent = interaction.sent
    if sent is None or sent.body is None:
        return None if run.sent is None or sent is not None else _unsent(interaction)
    body = sent.body.content
    if run.sent is None:
        return Check("sent", f"{len(body)} bytes", "now nothing is sent")
    if (sent.method, sent.path) != (run.sent.method, run.sent.path):
        return Check("sent", f"{len(body)} bytes", f"now to {run.sent.method} {run.sent.path}")
    return Check("sent", f"{len(body)} bytes", first_difference(body, run.sent.body))


def _unsent(interaction: Interaction) -> Check | None:
    # A request that was refused behind the preparation, by a limit, was not sent either.
    refused = interaction.end is not None and interaction.end.failure is not None
    return None if refused else Check("sent", "nothing", "now a request is sent")


def _answer(interaction: Interaction, run: OfflineRun) -> Check | None:
    gone = interaction.end is not None and interaction.end.cut == "client_gone"
    # What the doctor asks has no client.
    if interaction.gaps or (interaction.client_head is None and not gone):
        return None
    recorded = b"".join(write.data.content for write in interaction.writes)
    size = f"reads: {len(interaction.reads)}, events: {sum(map(len, run.events))}, writes: {len(interaction.writes)}"
    now = run.client
    if gone:
        # What was written to a client that had left is not known.
        now = now[: len(recorded)]
    return Check("answer", size, first_difference(recorded, now))


def _status(interaction: Interaction, run: OfflineRun) -> Check | None:
    end = interaction.end
    if end is None or interaction.gaps:
        return None
    now = f"{run.status} {run.code}".strip()
    was = f"{end.status} {end.code}".strip()
    return Check("outcome", was, "" if was == now else f"now {now}")


def first_difference(was: bytes, now: bytes) -> str:
    """Returns where two bodies differ first, with some bytes of each; empty for equal ones."""
    if was == now:
        return ""
    at = next(
        (at for at, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1]), min(len(was), len(now))
    )
    begin = max(at - 20, 0)
    return f"at byte {at} of {len(was)}: was {was[begin : at + 20]!r}, now {now[begin : at + 20]!r}"
