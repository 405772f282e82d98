"""Every call refuses every wrong caller, and nothing changes by it."""

import subprocess
import uuid

import grpc
import pytest
from calls import SERVICES_ONLY, name, owners_calls, path, services_calls
from rig import tokens
from rig.client import OPTIONS, Client, Failure, expect_error
from rig.layout import SERVICES, TLS
from rig.people import letter


@pytest.fixture(scope="module")
def clients(stack):
    """A client with each service's certificate."""
    opened = {service: Client(stack.layout, certificate=service) for service in SERVICES}
    yield opened
    for client in opened.values():
        client.close()


def failure_of(call) -> Failure:
    failure = Failure()
    with pytest.raises(grpc.RpcError) as raised:
        call()
    failure.error = raised.value
    return failure


def bearer(token: str) -> list:
    return [("authorization", f"Bearer {token}")]


# Access tokens

@pytest.fixture(scope="module")
def forge(clients, anna):
    """Makes tokens for Anna: identity's own key and issuer, unless the arguments say otherwise."""
    issuer = clients["vault"].identity.GetSigningKeys().issuer
    return lambda **changes: tokens.token(**{"account_id": anna.person.account_id, "issuer": issuer, **changes})


def test_a_token_made_like_identitys_is_good(forge, anyone):
    """Otherwise the refusals below would prove nothing."""
    for service, call in (("identity", "GetAccount"), ("vault", "GetSummary")):
        getattr(getattr(anyone.with_token(forge()), service), call)()


def flipped(token: str, segment: int) -> str:
    """The token with one bit of one segment turned over, still base64url."""
    parts = token.split(".")
    text = parts[segment]
    middle = len(text) // 2
    parts[segment] = text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1:]
    return ".".join(parts)


FORGERIES = {
    "none": lambda forge, folder: [],
    "empty": lambda forge, folder: [("authorization", "Bearer")],
    "not_a_token": lambda forge, folder: bearer("a.b.c"),
    "other_scheme": lambda forge, folder: [("authorization", "Basic " + forge())],
    "header_changed": lambda forge, folder: bearer(flipped(forge(), 0)),
    "claims_changed": lambda forge, folder: bearer(flipped(forge(), 1)),
    "signature_changed": lambda forge, folder: bearer(flipped(forge(), 2)),
    "signature_cut": lambda forge, folder: bearer(forge().rsplit(".", 1)[0] + "."),
    "other_key": lambda forge, folder: bearer(forge(key=tokens.new_key(folder))),
    "other_key_under_the_name_of_ours": lambda forge, folder: bearer(
        forge(key=tokens.new_key(folder), header={"kid": tokens.key_id(tokens.KEYS / "token-signing.pem")})),
    "alg_none": lambda forge, folder: bearer(forge(header={"alg": "none"}, signature=b"")),
    "alg_none_signed": lambda forge, folder: bearer(forge(header={"alg": "none"})),
    "alg_hs256": lambda forge, folder: bearer(forge(header={"alg": "HS256"})),
    "expired": lambda forge, folder: bearer(forge(age=661)),
    "from_the_future": lambda forge, folder: bearer(forge(age=-600)),
    "too_long_lived": lambda forge, folder: bearer(forge(age=0, exp=2**40)),
    "other_issuer": lambda forge, folder: bearer(forge(iss="https://elsewhere.example")),
    "other_audience": lambda forge, folder: bearer(forge(aud="elsewhere")),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_ID_11_call_without_a_genuine_token_is_unauthenticated(forge, anyone, records, tmp_path, forgery):
    metadata = FORGERIES[forgery](forge, tmp_path)
    answers = {}
    with records.unchanged():
        for service, method in owners_calls():
            failure = failure_of(lambda: anyone.raw(service, path(method), b"", metadata))
            answers[name(method)] = f"{failure.code.name}: {failure.message}"
    wrong = {call: answer for call, answer in answers.items() if not answer.startswith("UNAUTHENTICATED: ")}
    assert len(answers) > 30 and wrong == {}


# Services

@pytest.mark.parametrize("service,method", services_calls(), ids=lambda value: getattr(value, "full_name", value))
def test_call_between_services_is_closed_to_a_person(anyone, anna, records, service, method):
    with records.unchanged():
        for metadata in ([], bearer(anna.client.token)):
            failure = failure_of(lambda: anyone.raw(service, path(method), b"", metadata))
            assert failure.code.name == "PERMISSION_DENIED"


@pytest.mark.parametrize("service,method", services_calls(), ids=lambda value: getattr(value, "full_name", value))
def test_call_between_services_is_open_only_to_the_services_named(clients, records, service, method):
    """Who is let in is told what is wrong with the request; a statement that proves nothing is refused as well, but in
    other words."""
    # An empty request; for Subscribe, which would wait for events, a negative position.
    body = b"" if method.name != "Subscribe" else b"\x08" + b"\xff" * 9 + b"\x01"
    turned_away = {}
    with records.unchanged():
        for caller, client in clients.items():
            try:
                client.raw(service, path(method), body, [])
                turned_away[caller] = False
            except grpc.RpcError as error:
                turned_away[caller] = error.details() == "This call is not open to you."
                assert error.code().name == "PERMISSION_DENIED" or not turned_away[caller]
    assert {caller for caller, turned in turned_away.items() if not turned} == SERVICES_ONLY[name(method)]


def test_certificate_of_another_authority_opens_no_connection(stack, anna, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", key, "-out", certificate, "-subj", "/CN=delivery",
                    "-addext", "subjectAltName=URI:spiffe://afterthoughts/delivery,IP:127.0.0.1"],
                   check=True, capture_output=True)
    credentials = grpc.ssl_channel_credentials(
        (TLS / "ca.pem").read_bytes(), key.read_bytes(), certificate.read_bytes())
    with grpc.secure_channel(stack.layout.address("recipients"), credentials, options=OPTIONS) as channel:
        freeze = channel.unary_unary("/afterthoughts.recipients.v1.AudienceService/FreezeAudience")
        account = anna.person.account_id.encode()
        assert failure_of(lambda: freeze(b"\x0a\x24" + account, timeout=10)).code.name == "UNAVAILABLE"
    # Not frozen.
    anna.client.recipients.CreateGroup(name="Still open")


def test_certificate_is_no_sign_in(clients, records):
    with records.unchanged():
        for service, method in owners_calls():
            failure = failure_of(lambda: clients["delivery"].raw(service, path(method), b"", []))
            assert failure.code.name == "UNAUTHENTICATED", name(method)


# Another's objects

#: A call on another's object, made by somebody who may do the same with their own.
OTHERS = {
    "GetMessage": lambda me, ids: me.vault.GetMessage(message_id=ids["message"]),
    "SaveDraft": lambda me, ids: me.vault.SaveDraft(
        message_id=ids["message"], revision=1, content=letter([])),
    "SaveToVault": lambda me, ids: me.vault.SaveToVault(
        message_id=ids["message"], revision=1, content=letter([ids["own recipient"]])),
    "DeleteMessage": lambda me, ids: me.vault.DeleteMessage(message_id=ids["message"], revision=1),
    "GetFolderItem": lambda me, ids: me.vault.GetFolderItem(item_id=ids["item"]),
    "SaveFolderItem": lambda me, ids: me.vault.SaveFolderItem(
        item_id=ids["item"], revision=1, section="FOLDER_SECTION_OTHER", title="Mine"),
    "DeleteFolderItem": lambda me, ids: me.vault.DeleteFolderItem(item_id=ids["item"]),
    "GetRecipient": lambda me, ids: me.recipients.GetRecipient(recipient_id=ids["recipient"]),
    "UpdateRecipient": lambda me, ids: me.recipients.UpdateRecipient(
        recipient_id=ids["recipient"], revision=1, recipient={"name": "X"}, update_mask={"paths": ["name"]}),
    "RemoveRecipient": lambda me, ids: me.recipients.RemoveRecipient(recipient_id=ids["recipient"]),
    "SendPrompt": lambda me, ids: me.recipients.SendPrompt(
        recipient_id=ids["recipient"], channels=["PROMPT_CHANNEL_EMAIL"]),
    "CreateGroup": lambda me, ids: me.recipients.CreateGroup(name="X", recipient_ids=[ids["recipient"]]),
    "AddRecipient": lambda me, ids: me.recipients.AddRecipient(
        name="X", email="x@example.org", relationship="RELATIONSHIP_OTHER", group_ids=[ids["group"]]),
    "GetGroup": lambda me, ids: me.recipients.GetGroup(group_id=ids["group"]),
    "UpdateGroup": lambda me, ids: me.recipients.UpdateGroup(group_id=ids["group"], revision=1, name="X"),
    "DeleteGroup": lambda me, ids: me.recipients.DeleteGroup(group_id=ids["group"]),
    "Designate": lambda me, ids: me.confirmation.Designate(administrator={"recipient_id": ids["recipient"]}),
    "OpenAttempt": lambda me, ids: me.confirmation.OpenAttempt(designation_id=ids["designation"]),
    "AnswerChallenge": lambda me, ids: me.confirmation.AnswerChallenge(
        attempt_id=ids["attempt"], security_answer="Linden Street", code=ids["code"]),
    "ConfirmPassing": lambda me, ids: me.confirmation.ConfirmPassing(
        attempt_id=ids["attempt"], typed_name="Anna Lindqvist"),
    "CancelAttempt": lambda me, ids: me.confirmation.CancelAttempt(attempt_id=ids["attempt"]),
    "ListDeliveries": lambda me, ids: me.delivery.ListDeliveries(account_id=ids["account"]),
}


@pytest.fixture(scope="module")
def annas(people, anna, cleo, eva):
    attempt, code = people.open_attempt(anna, eva)
    return {"message": anna.message_id, "item": anna.item_id, "recipient": anna.recipient_id, "group": anna.group_id,
            "designation": anna.designation_id, "attempt": attempt.attempt_id, "code": code,
            "account": anna.person.account_id, "own recipient": cleo.recipient_id}


@pytest.mark.parametrize("call", OTHERS.values(), ids=OTHERS)
def test_VA_21_VA_23_VA_30_VA_31_RE_3_RE_6_RE_12_RE_15_CO_1_CO_8_CO_11_DE_13_anothers_object_answers_as_a_missing_one(
        annas, cleo, records, call):
    nobodys = {**{key: str(uuid.uuid4()) for key in annas}, "code": annas["code"],
               "own recipient": annas["own recipient"]}
    with records.unchanged():
        another = failure_of(lambda: call(cleo.client, annas))
        missing = failure_of(lambda: call(cleo.client, nobodys))
    assert another.code.name == "NOT_FOUND"
    told = [(failure.code, failure.message, [item for item in failure.error.trailing_metadata()])
            for failure in (another, missing)]
    assert told[0] == told[1]


def test_VA_8_saving_to_anothers_recipient_or_group_answers_as_to_one_that_does_not_exist(anna, cleo, records):
    def told(**changes):
        with expect_error("INVALID_ARGUMENT") as failure:
            cleo.client.vault.SaveToVault(content=letter(**{"recipient_ids": [], **changes}))
        return failure.message, failure.fields

    with records.unchanged():
        for field, anothers in (("recipient_ids", anna.recipient_id), ("group_ids", anna.group_id)):
            message, fields = told(**{field: [anothers]})
            assert fields == [f"content.{field}[0]"]
            assert (message, fields) == told(**{field: [str(uuid.uuid4())]})


def test_RE_6_VA_25_lists_hold_only_what_is_ones_own(anna, cleo):
    assert [group.group_id for group in cleo.client.recipients.ListGroups().groups] == [cleo.group_id]
    assert {found.recipient_id for found in cleo.client.recipients.ListRecipients().recipients} == {
        cleo.recipient_id, cleo.other_recipient_id}
    assert {found.message_id for found in cleo.client.vault.ListMessages().messages} == {
        cleo.message_id, cleo.draft_id}
    assert list(cleo.client.vault.ListMessages(recipient_id=anna.recipient_id).messages) == []
    assert [item.item_id for item in cleo.client.vault.ListFolderItems().items] == [cleo.item_id]


def test_NO_10_anothers_notice_is_not_marked_as_read(annas, anna, cleo, records):
    records.settle()
    notices = anna.client.notifications.ListNotifications().notifications
    assert [notice.read for notice in notices] == [False]
    cleo.client.notifications.MarkRead(notification_ids=[notices[0].notification_id])
    assert [notice.read for notice in anna.client.notifications.ListNotifications().notifications] == [False]
