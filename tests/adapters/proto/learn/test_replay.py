"""What is learned from one exchange of each kind with a service replays exchanges that were held back."""

from pathlib import Path

import msgspec
import pytest

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.learn import Proposal, RecordedExchange, fitting_methods, propose
from gateway.commands.learn.replay import replay
from gateway.settings import check_options
from tests.adapters.proto.learn.recorded import SERVICES, options_of, recorded
from tests.tiers import sample

WORDS = ("Kyoto", "Reykjavik")


def proposed(service: str, exchanges: list[RecordedExchange]) -> Proposal:
    known = options_of(service)
    return propose(known.schema, known.method, known.carrier, exchanges)


def adapter_of(service: str, proposal: Proposal, folder: Path) -> ProtoAdapter:
    """The adapter of the proposed entry alone."""
    file = folder / "schema.pb"
    file.write_bytes(options_of(service).schema.data)
    entry = check_options({"schema": {"set": str(file)}, **proposal.entry}, ProtoOptions, "options")
    return ProtoAdapter(entry, 1 << 20)


def carrier(service: str) -> str:
    return options_of(service).carrier


@sample("shown", carrier)
@pytest.mark.parametrize("shown", WORDS)
@pytest.mark.parametrize("service", SERVICES)
def test_a_mapping_that_was_learned_replays_exchanges_that_were_held_back(
    service: str, shown: str, tmp_path: Path
) -> None:
    (held_back,) = {*WORDS} - {shown}
    proposal = proposed(service, recorded(service, shown))
    assert [doubt.text() for doubt in proposal.doubts if doubt.kind == "open"] == []
    adapter = adapter_of(service, proposal, tmp_path)
    replays = [replay(adapter, exchange) for exchange in recorded(service, held_back)]
    assert len(replays) == 5 and all(one.compared for one in replays)
    assert [(one.name, place.text()) for one in replays for place in (*one.request, *one.answer)] == []


@sample(carrier)
@pytest.mark.parametrize("service", SERVICES)
def test_without_known_answers_every_rule_is_told_as_assumed(service: str) -> None:
    exchanges = [msgspec.structs.replace(one, known=None) for one in recorded(service, "Kyoto") if one.name != "error"]
    proposal = proposed(service, exchanges)
    read = repr(proposal.entry["read"])
    assert "openai" in read or any(
        doubt.kind == "assumed" and doubt.place == "read.text" and "no answer is known" in doubt.reason
        for doubt in proposal.doubts
    )


@pytest.mark.parametrize("service", SERVICES)
def test_the_method_and_the_carrier_are_found_by_the_bodies(service: str) -> None:
    options = options_of(service)
    exchanges = recorded(service, "Kyoto")
    assert fitting_methods(options.schema, None, exchanges) == [(options.method, options.carrier)]
    assert fitting_methods(options.schema, "frames_u32", exchanges) == []
