"""Signatures for AWS are those of botocore."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairtrial.providers.sigv4 import Credentials, signed_headers

NAMES = st.text("abcdefghij.:-_0123456789", min_size=1, max_size=30)


def reference(url, body, credentials, region):
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import ReadOnlyCredentials

    request = AWSRequest("POST", url, headers={"Content-Type": "application/json"}, data=body)
    auth.SigV4Auth(ReadOnlyCredentials(*credentials), "bedrock", region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@given(model=NAMES, body=st.binary(max_size=200), token=st.none() | NAMES, port=st.sampled_from(["", ":443", ":8443"]))
def test_they_equal_botocores(model, body, token, port):
    from urllib.parse import quote

    url = f"https://bedrock-runtime.eu-west-1.amazonaws.com{port}/model/{quote(model, safe='')}/converse"
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", token)
    expected = reference(url, body, credentials, "eu-west-1")
    now = datetime.strptime(expected["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    found = signed_headers(url, body, credentials, "eu-west-1", "bedrock", now)
    assert {name: found[name] for name in found} == {name: expected[name] for name in found}


def test_a_secret_is_not_shown():
    assert "wJalr" not in repr(Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI"))
