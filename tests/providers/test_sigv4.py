"""Signatures for AWS are those of botocore."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairtrial.core.experiment import TargetSpec
from fairtrial.providers.sigv4 import Credentials, signed_headers
from fairtrial.targets.bedrock_api import BedrockApi, BedrockOptions

NAMES = st.text("abcdefghij.:-_0123456789", min_size=1, max_size=30)


def reference(url, body, credentials, region, now=None):
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import ReadOnlyCredentials

    request = AWSRequest("POST", url, headers={"Content-Type": "application/json"}, data=body)
    with pytest.MonkeyPatch.context() as patch:
        if now is not None:
            patch.setattr(auth, "get_current_datetime", lambda: now)
        auth.SigV4Auth(ReadOnlyCredentials(*credentials), "bedrock", region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@pytest.mark.slow
@given(model=NAMES, body=st.binary(max_size=200), token=st.none() | NAMES, port=st.sampled_from(["", ":443", ":8443"]))
def test_they_equal_botocores(model, body, token, port):
    from urllib.parse import quote

    url = f"https://bedrock-runtime.eu-west-1.amazonaws.com{port}/model/{quote(model, safe='')}/converse"
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", token)
    expected = reference(url, body, credentials, "eu-west-1")
    now = datetime.strptime(expected["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    found = signed_headers(url, body, credentials, "eu-west-1", "bedrock", now)
    assert {name: found[name] for name in found} == {name: expected[name] for name in found}


@given(st.lists(st.sampled_from(["", ".", "..", "...", "a", "b%3A0", "~"]), max_size=6))
@example([".", "converse"])
@example(["model", "..", "converse"])
@example(["proxy", "", "model", ""])
def test_paths_are_signed_without_dots_and_empty_parts(parts):
    now = datetime(2027, 1, 1, tzinfo=UTC)
    given = "/".join(["https://bedrock-runtime.amazonaws.com", *parts]), b"{}", Credentials("A", "s"), "eu-west-1"
    expected = reference(*given, now)["authorization"]
    assert signed_headers(*given, "bedrock", now)["authorization"] == expected


# Few values, so that most requests share some of what is kept from one request to the next.
SOME = {
    "path": st.sampled_from(["/model/a/converse", "/model/a/converse-stream", "/model/b%3A0/converse"]),
    "body": st.sampled_from([b"", b"{}", b'{"a": 1}']),
    "credentials": st.builds(
        Credentials, st.sampled_from("AB"), st.sampled_from(["s", "t"]), st.sampled_from([None, "token", "other"])
    ),
    "region": st.sampled_from(["eu-west-1", "us-east-1"]),
    "now": st.sampled_from(
        [
            datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
            datetime(2026, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            datetime(2027, 1, 1, tzinfo=UTC),
            datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC),
        ]
    ),
}


@given(st.lists(st.fixed_dictionaries(SOME), min_size=2, max_size=12))
def test_nothing_of_another_request_gets_into_a_signature(requests):
    for request in requests:
        url = f"https://bedrock-runtime.amazonaws.com{request['path']}"
        body, credentials, region, now = (request[name] for name in ("body", "credentials", "region", "now"))
        expected = reference(url, body, credentials, region, now)
        found = signed_headers(url, body, credentials, region, "bedrock", now)
        assert {name: found[name] for name in found} == {name: expected[name] for name in found}
        found.clear()  # whoever has the headers may change them


def test_a_signature_is_of_the_present(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.9)
    found = signed_headers("https://x/model/a/converse", b"{}", Credentials("A", "s"), "eu-west-1", "bedrock")
    assert found["x-amz-date"] == "20270115T080000Z"


def test_a_secret_is_not_shown():
    assert "wJalr" not in repr(Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI"))


def signed_in(credentials, monkeypatch, folder):
    """A target that has found these credentials."""
    session = pytest.importorskip("botocore.session")
    monkeypatch.setattr(session.Session, "get_credentials", lambda self: credentials)
    spec = TargetSpec(id="b", kind="bedrock_api", provider="bedrock", model="m", base_url="http://127.0.0.1:9")
    target = BedrockApi(spec, BedrockOptions(region="eu-west-1"), folder)
    target._sign_in()
    return target


async def key_of(target):
    headers = await target.signed(target.url(), b"{}")
    return headers["authorization"].partition("Credential=")[2].partition("/")[0], headers.get("x-amz-security-token")


async def test_credentials_that_last_sign_every_request(monkeypatch, tmp_path):
    credentials = pytest.importorskip("botocore.credentials")
    target = signed_in(credentials.Credentials("KEY", "secret", "token"), monkeypatch, tmp_path)
    assert [await key_of(target) for _ in range(2)] == [("KEY", "token")] * 2


async def test_credentials_that_expire_are_renewed_in_time(monkeypatch, tmp_path):
    credentials = pytest.importorskip("botocore.credentials")
    renewals = iter(range(1, 9))

    def renew(minutes):
        number, expiry = next(renewals), datetime.now(UTC) + timedelta(minutes=minutes)
        return {
            "access_key": f"KEY{number}",
            "secret_key": "s",
            "token": f"t{number}",
            "expiry_time": expiry.isoformat(),
        }

    expiring = credentials.RefreshableCredentials.create_from_metadata(renew(1), lambda: renew(60), "test")
    target = signed_in(expiring, monkeypatch, tmp_path)
    assert [await key_of(target) for _ in range(2)] == [("KEY2", "t2")] * 2
    expiring._expiry_time = datetime.now(UTC) + timedelta(minutes=1)
    assert await key_of(target) == ("KEY3", "t3")
