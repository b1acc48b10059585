from datetime import UTC, datetime

import pytest

from gateway.adapter import SigningAdapter, UnsignedRequest
from gateway.testing.conformance import CHECKS, Case, Check
from tests.examples.jackdaw import JackdawAdapter, JackdawOptions
from tests.examples.test_parrot import WIRE

# AWS's test suite of Signature Version 4: its credential, time, host and scope.
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
NOW = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
SUITE = JackdawOptions(key_id="AKIDEXAMPLE", service="service")
FORM = {"content-type": "application/x-www-form-urlencoded"}
TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwt"
    "hAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVX"
    "AkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)

CASES = [Case("signed", JackdawAdapter, WIRE, options={"key_id": "AKIDEXAMPLE"})]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_jackdaw_conforms(case: Case, check: Check) -> None:
    check(case)


@pytest.mark.parametrize(
    ("method", "query", "headers", "body", "key", "signature"),
    [
        ("GET", "", {}, b"", SECRET, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "", {}, b"", SECRET, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "Param2=value2&Param1=value1",
            {},
            b"",
            SECRET,
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "%E1%88%B4=bar",
            {},
            b"",
            SECRET,
            "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
        ),
        (
            "POST",
            "",
            FORM,
            b"Param1=value1",
            SECRET,
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "POST",
            "",
            {},
            b"",
            f"{SECRET}:{TOKEN}",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ],
    ids=[
        "get-vanilla",
        "post-vanilla",
        "get-vanilla-query-order-key-case",
        "get-vanilla-utf8-query",
        "post-x-www-form-urlencoded",
        "post-sts-header-before",
    ],
)
def test_signatures_are_those_that_aws_has_published(
    method: str, query: str, headers: dict[str, str], body: bytes, key: str, signature: str
) -> None:
    adapter = JackdawAdapter(SUITE, 1 << 20)
    assert isinstance(adapter, SigningAdapter)
    sent = {"host": "example.amazonaws.com", "user-agent": "not signed", **headers}
    added = adapter.sign(UnsignedRequest(method, "/", query, sent, body), key, NOW)
    assert added["authorization"].endswith(f", Signature={signature}")
    assert added["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/")
