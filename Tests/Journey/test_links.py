"""The pages behind mailed links: looking changes nothing, and only a form of the page itself does."""

import http.client
import re
import secrets
import urllib.parse

import pytest

PRIVATE = {"cache-control": "no-store", "referrer-policy": "no-referrer", "x-robots-tag": "noindex"}


@pytest.fixture(scope="module")
def links(people, anna, eva):
    """A link of each kind, with the path that its button posts to."""
    finn = people.register("Finn Ode", "finn@example.org", verified=False)
    anna.client.recipients.AddRecipient(
        name="Gil", email="gil@example.org", relationship="RELATIONSHIP_OTHER",
        prompt_channels=["PROMPT_CHANNEL_EMAIL"])
    dora = people.author("Dora Quist", "dora@example.org", eva)
    people.confirm(dora, eva)
    mail = people.stack.mail
    return {"verify": finn.verification.link, "prompt": mail.wait_for("gil@example.org").link,
            "message": mail.wait_for("ben.dora@example.org", seconds=60).link}


def ask(method: str, address: str, fields: dict | None = None, **headers):
    """The response and its body, without following anything."""
    parts = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=20)
    if fields is not None:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, parts.path, urllib.parse.urlencode(fields) if fields is not None else None, headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response, body


def forms(body: str) -> list:
    """Path and hidden fields of each form."""
    return [(action, dict(re.findall(r'name="([^"]+)" value="([^"]*)"', inner)))
            for action, inner in re.findall(r'<form method="post" action="([^"]+)">(.*?)</form>', body, re.S)]


def cookie(response) -> str:
    return response.headers["set-cookie"].split(";")[0]


@pytest.mark.parametrize("kind", ["verify", "prompt", "message"])
def test_DE_12_ID_6_RE_18_looking_at_a_link_changes_nothing(links, records, kind):
    with records.unchanged():
        for method in ("HEAD", "GET", "GET", "HEAD"):
            response, body = ask(method, links[kind])
            assert response.status == 200 and bool(body) == (method == "GET")
            assert {key: response.headers[key] for key in PRIVATE} == PRIVATE
        for method in ("PUT", "DELETE", "OPTIONS"):
            assert ask(method, links[kind])[0].status >= 400


@pytest.mark.parametrize("kind", ["verify", "prompt", "message"])
def test_OP_11_unknown_or_malformed_link_leads_nowhere(links, records, kind):
    """The verification page knows only at its button whether the link is good: asking would tell a scanner."""
    base = links[kind].rsplit("/", 1)[0]
    unknown, other = secrets.token_urlsafe(32), next(link for name, link in links.items() if name != kind)
    with records.unchanged():
        for token in (unknown, other.rsplit("/", 1)[1], links[kind].rsplit("/", 1)[1][:-1], "x", "..%2f..", "%00"):
            response, body = ask("GET", f"{base}/{token}")
            assert response.status in ((400, 404) if "%" in token else (404,)) or kind == "verify" and len(token) == 43
            for action, fields in forms(body):
                refused, _ = ask("POST", urllib.parse.urljoin(base, action), fields, Cookie=cookie(response))
                assert refused.status == 404


def genuine(links, kind):
    """What the page's first button would send: address, fields, cookie."""
    response, body = ask("GET", links[kind])
    action, fields = forms(body)[0]
    return urllib.parse.urljoin(links[kind], action), fields, cookie(response)


@pytest.mark.parametrize("kind", ["verify", "prompt", "message"])
def test_OP_11_form_from_elsewhere_is_refused(links, records, kind):
    address, fields, known = genuine(links, kind)
    without = {key: value for key, value in fields.items() if key != "form_token"}
    addresses = [address] if kind != "message" else [address, links[kind] + "/acknowledge"]
    with records.unchanged():
        for to in addresses:
            for sent, headers in (
                    ({}, {}), (fields, {}), (without, {"Cookie": known}), ({**fields, "form_token": ""}, {"Cookie": "form="}),
                    ({**fields, "form_token": "x" * 36}, {"Cookie": known}),
                    (fields, {"Cookie": known, "Origin": "https://elsewhere.example"}),
                    (fields, {"Cookie": known, "Sec-Fetch-Site": "cross-site"})):
                assert ask("POST", to, sent, **headers)[0].status == 403


@pytest.mark.parametrize("kind", ["verify", "prompt", "message"])
def test_DE_12_ID_6_RE_18_the_pages_own_form_works_and_may_be_sent_again(links, records, kind):
    """Otherwise the refusals above would prove nothing."""
    address, fields, known = genuine(links, kind)
    records.settle()
    before = records.digests()
    first, text = ask("POST", address, fields, Cookie=known)
    assert first.status == 200, text
    records.settle()
    assert records.digests() != before
    if kind != "message":
        with records.unchanged():
            again, _ = ask("POST", address, fields, Cookie=known)
            assert again.status == 200
