"""Finds the rules of a mapping from recorded responses and the answers that clients got of them."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from adapters.proto.backend.field_getters import leaf_of
from adapters.proto.learn.call_search import call_rule, find_calls
from adapters.proto.learn.error_search import find_errors
from adapters.proto.learn.finish_search import find_finish, finish_rule
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of, text_of
from adapters.proto.learn.rule_tree import RuleTree
from adapters.proto.learn.spots import Spot, Way
from adapters.proto.learn.text_search import TextPlace, find_text
from adapters.proto.learn.usage_search import find_usage
from gateway.core.conversation import Json


class LearnedRules(msgspec.Struct, frozen=True):
    """The rules as settings.json holds them. `ends` is that of the entry."""

    read: tuple[dict[str, Any], ...]
    doubts: tuple[Doubt, ...]
    reads_calls: bool = False
    ends: str = "finish"


def find_rules(responses: Sequence[RecordedResponse], *, calls_in_text: bool, reports_status: bool) -> LearnedRules:
    """Returns the rules. `calls_in_text`: calls are part of the text of a response. `reports_status`: the carrier tells
    the end by itself."""
    if (document := _openai_document(responses)) is not None:
        return LearnedRules(
            ({"json": document.path, "openai": True},), _unread(responses, [document]), reads_calls=True
        )
    search = _Search(responses, calls_in_text)
    return search.rules(reports_status)


class _Search:
    def __init__(self, responses: Sequence[RecordedResponse], calls_in_text: bool) -> None:
        self._all = responses
        self._answers = [one for one in responses if one.complete]
        self._calls_in_text = calls_in_text
        self._tree = RuleTree()
        self._doubts: list[Doubt] = []
        self._read: list[Spot] = []

    def rules(self, reports_status: bool) -> LearnedRules:
        texts = self._texts()
        calls = self._calls(texts)
        ends = "finish" if self._finish(reports_status) else "status" if reports_status else "close"
        self._usage()
        self._start()
        self._errors()
        self._choice(texts)
        doubts = (*self._doubts, *_unread(self._all, self._read))
        return LearnedRules(tuple(self._tree.written()), doubts, calls, ends)

    def _texts(self) -> list[Way]:
        """Adds the rules of the text and the reasoning. Returns the repeated fields that hold them."""
        told = [one for one in self._answers if not (self._calls_in_text and one.known.calls)]
        text = find_text(told, lambda known: known.text, "text")
        reasoning = find_text(self._answers, lambda known: known.reasoning, "reasoning")
        if not text.places:
            self._doubts.append(Doubt("open", "read.text", "no known answer has a text that a field holds"))
        self._doubts += [*text.doubts, *reasoning.doubts]
        for name, found in (("reasoning", reasoning), ("text", text)):
            for place in found.places:
                self._tree.add(place.spot.each, _text_rule(name, place))
                above = ".".join([*(f"{way}[]" for way in place.spot.each), ""])
                self._read += [
                    spot for spot in _every_spot(self._answers) if spot.text in {above + path for path in place.when}
                ]
                self._read.append(place.spot)
        return [place.spot.each for found in (text, reasoning) for place in found.places]

    def _calls(self, content: Sequence[Way]) -> bool:
        if self._calls_in_text:
            return False
        found = find_calls(self._answers)
        self._doubts += found.doubts
        if found.place is None:
            return False
        self._tree.add(*call_rule(found.place, content))
        place = found.place
        self._read += [spot for spot in (place.name, place.arguments, place.key, place.id) if spot is not None]
        return True

    def _finish(self, reports_status: bool) -> bool:
        place, doubts = find_finish(self._all, self._read)
        if place is None:
            end = "the status of the carrier" if reports_status else "the end of the body"
            reason = f"no field tells the end in every response; {end} does, as a stop"
            self._doubts.append(Doubt("chosen", "ends", reason))
            return False
        self._doubts += doubts
        if any(one.presumed for one in self._answers):
            words = tuple(f"{word}: {reason}" for word, reason in place.words.items())
            self._doubts.append(Doubt("assumed", "read.finish", f"{place.text}; ends by their names", words))
        rule, assumed = finish_rule(place)
        self._doubts += assumed
        self._tree.add(place.each, {"finish": rule})
        self._read += [spot for spot in spots_of(self._all, "enum", "text", "flag") if spot.text == place.text]
        if place.key == "oneof":
            above = place.text.rpartition(".")[0]
            self._read += [spot for spot in _every_spot(self._all) if spot.text == above or spot.path in place.words]
        return True

    def _usage(self) -> None:
        found = find_usage(self._answers)
        for each, rule in found.rules:
            self._tree.add(each, rule)
        self._read += found.spots
        self._doubts += found.doubts

    def _start(self) -> None:
        """Adds the backend's id of the response and its name of the model, which do not change within a response."""
        rule: dict[str, Json] = {}
        for name, own in (("id", [one.known.id for one in self._answers]), ("model", _models(self._answers))):
            for spot in spots_of(self._answers, "text"):
                if spot.each or spot.tensor or spot in self._read or name in rule:
                    continue
                said = [{value.value for value in one.of(spot)} for one in self._answers]
                if not all(len(values) == 1 for values in said):
                    continue
                values = [value.pop() for value in said]
                exact = all(value == wanted for value, wanted in zip(values, own, strict=True))
                by_name = name in spot.path.rpartition(".")[2].lower()
                apart = name != "id" or len({*values}) == len(values)
                if exact or (by_name and apart):
                    rule[name] = spot.path
                    self._read.append(spot)
                    if not exact:
                        self._doubts.append(Doubt("assumed", f"read.start.{name}", f"{spot.text}, by its name"))
        if rule:
            self._tree.add((), {"start": rule})
        self._stopped_by()

    def _stopped_by(self) -> None:
        for spot in spots_of(self._answers, "text"):
            said = [(value.value, one) for one in self._answers for value in one.of(spot)]
            plain = spot not in self._read and not spot.each and not spot.tensor and said
            if plain and all(value in one.conversation.sampling.stop for value, one in said):
                self._tree.add((), {"stopped_by": spot.path})
                self._read.append(spot)
                return

    def _errors(self) -> None:
        errors, doubts = find_errors(self._all, self._read)
        self._doubts += doubts
        for found in errors:
            self._tree.add(found.each, {"error": found.rule})
            self._read += found.read
            self._doubts += found.doubts

    def _choice(self, content: Sequence[Way]) -> None:
        """Marks the number of a choice, in the items of the first repeated field."""
        for each in dict.fromkeys(way[:1] for way in content if way):
            for spot in spots_of(self._all, "integer"):
                if spot.each == each and spot.path == "index":
                    self._tree.mark(each, "choice", "index")
                    self._read.append(spot)
                    return
            kinds = [
                value.item.DESCRIPTOR
                for one in self._all
                for spot, values in one.spots.values.items()
                if spot.each == each
                for value in values[:1]
            ]
            if kinds and "index" in kinds[0].fields_by_name and leaf_of(kinds[0].fields_by_name["index"]) == "integer":
                self._tree.mark(each, "choice", "index")
                self._doubts.append(
                    Doubt("assumed", f"read.choice: {each[0]}[].index", "the number of a choice, by its name")
                )


def _text_rule(name: str, place: TextPlace) -> dict[str, Any]:
    rule: dict[str, Any] = {"when": place.when} if place.when else {}
    rule[name] = msgspec.to_builtins(place.spot.written)
    return rule if place.mode == "delta" else {**rule, "mode": place.mode}


def _models(responses: Sequence[RecordedResponse]) -> list[str | None]:
    return [one.known.model or one.conversation.model for one in responses]


def _openai_document(responses: Sequence[RecordedResponse]) -> Spot | None:
    """Returns the spot at which chunks or responses of OpenAI's chat completions stand."""
    for spot in spots_of(responses, "text", "bytes"):
        values = [value.value for one in responses for value in one.of(spot)]
        if not spot.each and not spot.tensor and values and all(map(_is_openai, values)):
            return spot
    return None


def _is_openai(value: str | bytes) -> bool:
    try:
        found = json.loads(value)
    except ValueError:
        return False
    return isinstance(found, dict) and ("choices" in found or "error" in found)


def _every_spot(responses: Sequence[RecordedResponse]) -> list[Spot]:
    return list(dict.fromkeys(spot for one in responses for spot in one.spots.values))


def _unread(responses: Sequence[RecordedResponse], read: Sequence[Spot]) -> tuple[Doubt, ...]:
    """Returns a doubt for each value that no rule reads, of a tensor its name."""
    found: list[Doubt] = []
    for spot in _every_spot(responses):
        if spot.tensor or spot in read:
            continue
        field = next(one.spots.fields[spot] for one in responses if spot in one.spots.fields)
        inside = any(spot.text.startswith(f"{other.text}.") or other.text.startswith(f"{spot.text}.") for other in read)
        if leaf_of(field) in ("message", "map", "struct") or inside:
            continue
        shown = {text_of(value.value)[:40] for one in responses for value in one.of(spot)}
        found.append(Doubt("unread", spot.text, f"such as {min(shown, key=len)!r}"))
    return tuple(found)
