"""Two states under one anchor are ambiguous, and each state belongs to its scope."""

from gateway.memory.provider_state.cached_state import (
    MOST,
    LookupResult,
    Variant,
    decode_variants,
    encode_variants,
    lookup_result,
    with_variant,
    without_variant,
)

HERE, THERE = b"here", b"there"
ONE = Variant(HERE, b"1", (b"m1",))
TWO = Variant(HERE, b"2", (b"m2",))
OTHER = Variant(THERE, b"3", (b"m3",))


def test_the_same_state_again_changes_nothing() -> None:
    assert with_variant(with_variant((), ONE), ONE) == (ONE,)


def test_two_states_in_one_scope_are_lost_for_good() -> None:
    (lost,) = with_variant((ONE,), TWO)
    assert (lost.scope, lost.state, set(lost.digests)) == (HERE, None, {b"m1", b"m2"})
    assert with_variant((lost,), ONE)[0].state is None


def test_scopes_do_not_disturb_each_other_and_the_oldest_goes() -> None:
    assert with_variant((ONE,), OTHER) == (ONE, OTHER)
    variants: tuple[Variant, ...] = ()
    for number in range(MOST + 3):
        variants = with_variant(variants, Variant(b"%d" % number, b"x"))
    assert len(variants) == MOST
    assert variants[0].scope == b"3"


def test_only_what_was_refused_is_dropped() -> None:
    assert without_variant((ONE, OTHER), ONE) == (OTHER,)
    assert without_variant((TWO,), ONE) == (TWO,)


def test_the_first_anchor_that_knows_one_state_decides() -> None:
    lost = Variant(HERE, None, (b"m1", b"m2"))
    assert lookup_result([(b"a", (ONE,)), (b"b", (TWO,))], HERE).variant == ONE
    chosen = lookup_result([(b"a", (lost,)), (b"b", (ONE,))], HERE)
    assert (chosen.variant, chosen.keys, chosen.ambiguous) == (ONE, (b"a", b"b"), False)
    assert lookup_result([(b"a", (lost,)), (b"b", ())], HERE).ambiguous


def test_a_state_of_another_scope_is_foreign_unless_it_is_known_here_as_well() -> None:
    found = lookup_result([(b"a", (OTHER,))], HERE)
    assert (found.variant, found.foreign, found.elsewhere) == (None, frozenset({b"m3"}), True)
    both = Variant(THERE, b"1", (b"m1", b"m3"))
    assert lookup_result([(b"a", (ONE, both))], HERE).foreign == {b"m3"}
    assert lookup_result([], HERE) == LookupResult()


def test_variants_survive_their_bytes_and_other_bytes_are_none() -> None:
    assert decode_variants(encode_variants((ONE, Variant(THERE, None)))) == (ONE, Variant(THERE, None))
    assert decode_variants(b"\x00\xff") == ()
