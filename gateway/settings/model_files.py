"""Reads published files about models: a file's bytes -> what it says of each model, as the keys of settings.

Three forms are known, by their published schemas: genai-prices (`prices/data_v2.schema.json`, `prices/new_data/v3`),
models.dev (`packages/core/src/schema.ts`, as `api.json`) and LiteLLM (`model_prices_and_context_window.schema.json`).
What such a file says is the word of its makers, at the time of the file: nothing of the kind is in the package.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.core.model_facts import EFFORT_WORDS, SMALLEST_WINDOW, Effort, ModelFacts
from gateway.providers.registry import provider_of
from gateway.settings.values import Price

Form: TypeAlias = Literal["genai-prices", "models.dev", "LiteLLM"]

_MOST_DIGITS: Final = 6
# A number above it is a mistake of the file.
_MOST: Final = 10**12
# That of all three files, and of a price without one.
_CURRENCY: Final = "USD"
# Keys of LiteLLM's entries that say nothing that a setting could hold, or the same as another one.
_NO_FACTS: Final = frozenset({"litellm_provider", "mode", "max_tokens", "source", "comment", "metadata"})
_CHAT_MODES: Final = ("chat", "responses", "completion")


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """What a file says of one model of a provider. `left_out` are the parts of it that no key of settings can hold."""

    context_length: int | None = None
    price: Price | None = None
    facts: ModelFacts = ModelFacts()
    left_out: tuple[str, ...] = ()

    def keys(self) -> dict[str, Json]:
        """Returns the keys of an entry of `models` that say the same."""
        found: dict[str, Json] = {}
        if self.context_length is not None:
            found["context_length"] = self.context_length
        if self.price is not None:
            found["price"] = _written(self.price)
        if facts := msgspec.json.decode(msgspec.json.encode(self.facts)):
            found["facts"] = facts
        return found


def _written(price: Price) -> dict[str, Json]:
    """Returns a price without what an absent key means, and whole numbers as such."""
    given = {name: value for name, value in msgspec.to_builtins(price).items() if value not in (None, _CURRENCY)}
    return {name: int(value) if value == int(value) else value for name, value in given.items()}


class KnownProvider(msgspec.Struct, frozen=True):
    """A provider by its name in the file, a regular expression for the address of its API where the file has one, and a
    function that returns what the file says of the model that requests call by a name. A file has thousands of models,
    of which a few are read."""

    name: str
    address: str
    find: Callable[[str], KnownModel | None]


class ModelFile(msgspec.Struct, frozen=True):
    """A file about models: its form and its providers."""

    form: Form
    providers: tuple[KnownProvider, ...]

    def providers_at(self, base_url: str, named: str | None) -> tuple[KnownProvider, ...]:
        """Returns the providers of this name; None: those of an address."""
        if named is not None:
            return tuple([provider for provider in self.providers if provider.name == named])
        known = provider_of(base_url)
        names = () if known is None else (known.name, *known.published_names)
        return tuple([one for one in self.providers if one.name in names or _is_at(one.address, base_url)])


def read_model_file(body: bytes, today: date) -> ModelFile:
    """Returns what a file says, with the prices of a day. Raises SettingsError for a file in none of the three
    forms."""
    try:
        document = msgspec.json.decode(body.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise SettingsError(f"it is no JSON: {error}") from error
    listed = document.get("providers") if isinstance(document, dict) else document
    if isinstance(listed, list) and listed and all(isinstance(_dict(one).get("models"), list) for one in listed):
        return ModelFile("genai-prices", tuple([_genai_provider(_dict(one), today) for one in listed]))
    entries = [entry for entry in document.values() if isinstance(entry, dict)] if isinstance(document, dict) else []
    if entries and all(isinstance(entry.get("models"), dict) for entry in entries):
        return ModelFile("models.dev", tuple([_dev_provider(entry) for entry in entries]))
    if any("litellm_provider" in entry for entry in entries):
        return ModelFile("LiteLLM", tuple(_litellm_providers(document)))
    raise SettingsError("it is in none of the forms of genai-prices, models.dev and LiteLLM")


def _is_at(address: str, base_url: str) -> bool:
    if not address:
        return False
    try:
        return re.match(address, base_url) is not None
    except re.error:
        return False


# genai-prices


def _genai_provider(entry: JsonObject, today: date) -> KnownProvider:
    models = [_dict(model) for model in _list(entry.get("models"))]

    def find(name: str) -> KnownModel | None:
        # An id comes before a rule, as a rule may fit the names of several models.
        found = next((model for model in models if model.get("id") == name), None)
        found = found or next((model for model in models if _fits(model.get("match"), name)), None)
        return None if found is None else _genai_model(found, today)

    return KnownProvider(_text(entry.get("id")), _text(entry.get("api_pattern")), find)


def _genai_model(model: JsonObject, today: date) -> KnownModel:
    left: list[str] = []
    prices, told = _genai_prices(model.get("prices"), today)
    left.extend(told)
    numbers: dict[str, float | None] = {}
    for key in ("input_mtok", "output_mtok", "cache_read_mtok"):
        numbers[key], tiers = _base_price(prices.get(key))
        left.extend(f"{key} above {start} tokens" for start in tiers)
    left.extend(key for key in prices if key not in numbers)
    if note := _text(model.get("price_comments")):
        left.append(f"price_comments: {note}")
    price, missing = _price(numbers["input_mtok"], numbers["output_mtok"], numbers["cache_read_mtok"])
    return KnownModel(
        context_length=_window(model, "context_window", left),
        price=price,
        facts=ModelFacts(display_name=_title(model, left)),
        left_out=(*missing, *left),
    )


def _genai_prices(prices: Json, today: date) -> tuple[JsonObject, list[str]]:
    """Returns the prices of a day: those of the last condition that holds, else the first ones."""
    if not isinstance(prices, list):
        return _dict(prices), []
    conditions = [_dict(one) for one in prices]
    told = [
        f"prices from {constraint.get('start_time')} to {constraint.get('end_time')}"
        for one in conditions
        if "start_time" in (constraint := _dict(one.get("constraint")))
    ]
    holding = [one for one in conditions if _holds(_dict(one.get("constraint")), today)]
    chosen = holding[-1] if holding else (conditions[0] if conditions else {})
    return _dict(chosen.get("prices")), told


def _holds(constraint: JsonObject, today: date) -> bool:
    if "start_time" in constraint:
        return False
    start = constraint.get("start_date", constraint.get("start"))
    try:
        return start is None or date.fromisoformat(str(start)[:10]) <= today
    except ValueError:
        return False


def _base_price(value: Json) -> tuple[float | None, list[Json]]:
    """Returns a price, and from how many tokens on it is another one."""
    if isinstance(value, dict):
        tiers = [_dict(tier).get("start") for tier in _list(value.get("tiers"))]
        return _number(value.get("base")), tiers
    return _number(value), []


def _fits(clause: Json, name: str) -> bool:
    """Returns whether a name fits a rule, which has one key."""
    if not isinstance(clause, dict) or len(clause) != 1:
        return False
    ((kind, value),) = clause.items()
    if kind in ("or", "and"):
        fitting = [_fits(one, name) for one in _list(value)]
        return (any if kind == "or" else all)(fitting) and bool(fitting)
    test = _TESTS.get(kind)
    return test is not None and isinstance(value, str) and test(value, name)


def _regex(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        return False


_TESTS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "equals": lambda value, name: name == value,
    "starts_with": lambda value, name: name.startswith(value),
    "ends_with": lambda value, name: name.endswith(value),
    "contains": lambda value, name: value in name,
    "regex": _regex,
}


# models.dev


def _dev_provider(entry: JsonObject) -> KnownProvider:
    models = _dict(entry.get("models"))
    api = _text(entry.get("api"))

    def find(name: str) -> KnownModel | None:
        model = models.get(name)
        return _dev_model(model) if isinstance(model, dict) else None

    return KnownProvider(_text(entry.get("id")), re.escape(api) if api else "", find)


_DEV_PRICES: Final = ("input", "output", "cache_read")


def _dev_model(model: JsonObject) -> KnownModel:
    cost, limit = _dict(model.get("cost")), _dict(model.get("limit"))
    read = _dict(model.get("modalities")).get("input")
    left: list[str] = []
    title = _title(model, left)
    window, prompt = _window(limit, "context", left, "limit."), _window(limit, "input", left, "limit.")
    price, missing = _price(*(_number(cost.get(key)) for key in _DEV_PRICES)) if cost else (None, [])
    return KnownModel(
        context_length=window,
        price=price,
        facts=ModelFacts(
            display_name=title,
            max_output=_tokens(limit.get("output")),
            # What a prompt may have, less a tenth, as for a window.
            compact_at=None if prompt is None or (window is not None and prompt >= window) else prompt * 9 // 10,
            tools=_flag(model.get("tool_call")),
            images="image" in read if isinstance(read, list) else None,
            files="pdf" in read if isinstance(read, list) else None,
            efforts=() if model.get("reasoning") is False else _dev_efforts(model.get("reasoning_options")),
        ),
        left_out=(
            *missing,
            *left,
            *(f"cost.{key}" for key in cost if key not in _DEV_PRICES),
            *(f"{key} {model[key]}" for key in ("status",) if key in model),
        ),
    )


def _dev_efforts(options: Json) -> tuple[Effort, ...] | None:
    for option in map(_dict, _list(options)):
        if option.get("type") == "effort":
            return _known_efforts(_list(option.get("values")))
    return None


# LiteLLM


def _litellm_providers(document: Mapping[str, Json]) -> Iterator[KnownProvider]:
    by_provider: dict[str, dict[str, JsonObject]] = {}
    for key, entry in document.items():
        if isinstance(entry, dict) and key != "sample_spec":
            by_provider.setdefault(_text(entry.get("litellm_provider")), {})[key] = entry
    for slug, entries in by_provider.items():
        yield KnownProvider(slug, "", _litellm_finder(slug, entries))


def _litellm_finder(slug: str, entries: Mapping[str, JsonObject]) -> Callable[[str], KnownModel | None]:
    def find(name: str) -> KnownModel | None:
        key = next((key for key in (name, f"{slug}/{name}") if key in entries), None)
        return None if key is None else _litellm_model(entries[key])

    return find


_LITELLM_PRICES: Final = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
_LITELLM_FACTS: Final[Mapping[str, str]] = {
    "supports_function_calling": "tools",
    "supports_parallel_function_calling": "parallel_calls",
    "supports_vision": "images",
    "supports_pdf_input": "files",
}
_LITELLM_OTHERS: Final = ("max_input_tokens", "max_output_tokens", "reasoning_effort_levels", "supports_reasoning")


def _litellm_model(entry: JsonObject) -> KnownModel:
    mode = entry.get("mode", "chat")
    if mode not in _CHAT_MODES:
        return KnownModel(left_out=(f"everything: its mode is {mode}",))
    prices = [_number(entry.get(key)) for key in _LITELLM_PRICES]
    price, missing = _price(*(None if one is None else one * 1e6 for one in prices))
    efforts = entry.get("reasoning_effort_levels")
    default = _known_efforts([entry.get("default_reasoning_effort")])
    left: list[str] = []
    window = _window(entry, "max_input_tokens", left)
    read = {*_LITELLM_PRICES, *_LITELLM_FACTS, *_LITELLM_OTHERS, *(("default_reasoning_effort",) if default else ())}
    return KnownModel(
        context_length=window,
        price=price,
        facts=msgspec.structs.replace(
            ModelFacts(
                max_output=_tokens(entry.get("max_output_tokens")),
                efforts=_known_efforts(efforts) if isinstance(efforts, list) else _thoughtless(entry),
                default_effort=default[0] if default else None,
            ),
            **{fact: _flag(entry.get(key)) for key, fact in _LITELLM_FACTS.items()},
        ),
        left_out=(*missing, *left, *(key for key in entry if key not in read and key not in _NO_FACTS)),
    )


def _thoughtless(entry: JsonObject) -> tuple[Effort, ...] | None:
    return () if entry.get("supports_reasoning") is False else None


# Values


def _price(
    prompt: float | None = None, answer: float | None = None, cached: float | None = None
) -> tuple[Price | None, list[str]]:
    """Returns the price of a million tokens, and what is said where it is not known for both prompt and answer."""
    if prompt is None or answer is None:
        return None, ["the price: it is not known for both the prompt and the answer"]
    rounded = [None if one is None else round(one, _MOST_DIGITS) for one in (prompt, answer, cached)]
    return Price(rounded[0] or 0, rounded[1] or 0, rounded[2]), []


def _known_efforts(words: Iterable[Json]) -> tuple[Effort, ...]:
    listed = [*words]
    return tuple([word for word in EFFORT_WORDS if word in listed])


def _dict(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MOST else None


def _tokens(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST else None


def _window(entry: JsonObject, key: str, left: list[str], where: str = "") -> int | None:
    """Returns a window; one that no model has is a part that is left out."""
    tokens = _tokens(entry.get(key))
    if tokens is None or tokens >= SMALLEST_WINDOW:
        return tokens
    left.append(f"{where}{key} {tokens}")
    return None


def _title(entry: JsonObject, left: list[str]) -> str | None:
    """Returns a name for people; one that a terminal should not show is a part that is left out."""
    title = _text(entry.get("name"))
    if title.isprintable():
        return title or None
    left.append(f"name {title}")
    return None
