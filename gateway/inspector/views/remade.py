"""Makes the stages of a captured request again, when somebody looks at them: nothing between the bytes is captured."""

from collections.abc import Callable

import msgspec

from gateway.adapter import Adapter
from gateway.core.conversation import Turn
from gateway.core.errors import GatewayError, InvalidRequest
from gateway.core.notices import READ_RULES, Notice
from gateway.core.policy import Policy
from gateway.history.prepare import prepare
from gateway.recording.offline_run import OfflineRun, run_offline
from gateway.recording.outcome import Check, compare_to_recorded
from gateway.recording.recording import Interaction
from gateway.recording.route import adapter_of, policy_of
from gateway.settings import Settings


class Turns(msgspec.Struct, frozen=True):
    """The conversation at each stage: as the client sent it, repaired, cut to its limits, and as it was sent. Empty:
    the request did not come so far."""

    client: tuple[Turn, ...] = ()
    repaired: tuple[Turn, ...] = ()
    trimmed: tuple[Turn, ...] = ()
    sent: tuple[Turn, ...] = ()


class Remade(msgspec.Struct, frozen=True):
    """One captured request with what this version makes of its bytes. `notices` are those that were captured; `run` is
    None where it cannot be run, and `absent` says why, or what is missing of it. `checks` compare it with what was
    captured: a difference is a defect of the gateway. `lost` says what it no longer shows since it is redacted.
    `backend_words` are those of the backend about its failure, which are not redacted; empty: it said none, or nobody
    may see them."""

    interaction: Interaction
    notices: tuple[Notice, ...] = ()
    run: OfflineRun | None = None
    turns: Turns = Turns()
    adapter: Adapter | None = None
    policy: Policy = Policy()
    checks: tuple[Check, ...] = ()
    absent: str = ""
    lost: tuple[str, ...] = ()
    backend_words: str = ""


def remake(
    interaction: Interaction, settings: Settings, redact: Callable[[str], str] = str, run: OfflineRun | None = None
) -> Remade:
    """Returns one captured request with what is made of it. `redact` as in `run_offline`; `run`: it is done already."""
    if interaction.body is None:
        return Remade(interaction, interaction.notices, absent=_no_body(interaction))
    try:
        run = run or run_offline(interaction, settings, redact)
        route = interaction.route
        adapter = None if route is None else adapter_of(route, settings)
        policy = Policy() if route is None else policy_of(route)
    except GatewayError as error:
        return Remade(interaction, interaction.notices, absent=error.message)
    checks = compare_to_recorded(interaction, run)
    return Remade(
        interaction, interaction.notices, run, _turns(run, policy), adapter, policy, checks, _missing(interaction)
    )


def _no_body(interaction: Interaction) -> str:
    beginning = interaction.request.beginning
    if beginning is not None:
        kept = len(beginning.data.content)
        return (
            f"Nobody watched this request, which failed: of its {beginning.bytes:,} bytes the first {kept:,} were "
            "kept, so that its stages cannot be shown. To keep all of a request, watch before it begins."
        )
    if interaction.request.absent == "over_the_cap":
        return "The body of the request is larger than inspector.request_mb, so that it was not kept."
    return "The body of the request was not read."


def _missing(interaction: Interaction) -> str:
    found: list[str] = []
    if missing := sum(gap.bytes for gap in interaction.gaps):
        unwatched = any(gap.absent == "never_kept" for gap in interaction.gaps)
        found.append(
            f"{missing} bytes of the answer were not kept: nobody watched."
            if unwatched
            else f"{missing} bytes of the answer are over inspector.request_mb, and were not kept."
        )
    if any(notice.rule in READ_RULES for notice in interaction.notices):
        found.append(
            "The stages show placeholders for what was read of pictures and PDFs; the bytes that were sent hold it."
        )
    return " ".join(found)


def _turns(run: OfflineRun, policy: Policy) -> Turns:
    if run.conversation is None:
        return Turns()
    client, exchange = run.conversation.turns, run.exchange
    if exchange is not None:
        prepared = exchange.prepared
        return Turns(client, prepared.repaired.turns, prepared.conversation.turns, exchange.conversation.turns)
    try:
        prepared = prepare(run.conversation, policy)
    except InvalidRequest:
        return Turns(client)
    return Turns(client, prepared.repaired.turns, prepared.conversation.turns)
