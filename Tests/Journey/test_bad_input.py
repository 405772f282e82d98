"""Bad input gets a clear error and changes nothing."""

import concurrent.futures
import re
import uuid

import grpc
import pytest
from calls import ANYONE, SERVICES_ONLY, every_call, name, path
from rig.client import Client, expect_error
from rig.journey import ANSWER, PASSWORD
from rig.layout import DATABASE_SERVICES
from rig.people import letter

NO_TEXT = b"\xc3\x28"


@pytest.fixture(scope="module")
def clients(stack):
    opened = {name: Client(stack.layout, certificate=name) for name in DATABASE_SERVICES}
    yield opened
    for client in opened.values():
        client.close()


def delimited(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def with_invalid_text(message, depth: int = 3) -> list:
    """Encodings of the message type, each with one text that is not UTF-8, at any depth."""
    found = []
    for field in message.fields:
        if field.type == field.TYPE_STRING:
            found.append(delimited(field.number, NO_TEXT))
        elif field.type == field.TYPE_MESSAGE and depth > 0:
            found += [delimited(field.number, inner) for inner in with_invalid_text(field.message_type, depth - 1)]
    return found


NO_PROTOBUF = {
    "a field that ends too early": b"\x0a\x7fabc",
    "no field number": b"\x02\x00",
    "a wire type that does not exist": b"\x0f",
    "a number without an end": b"\x08" + b"\xff" * 11,
    "bytes": bytes(range(255, 0, -1)),
}


@pytest.mark.parametrize("service", DATABASE_SERVICES)
def test_bytes_that_are_no_protobuf_or_no_text_are_refused_by_every_call(service, clients, anna, records):
    accepted = []
    with records.unchanged():
        for method in (method for owner, method in every_call() if owner == service):
            # By a caller who may make the call.
            client = anna.client
            if name(method) in SERVICES_ONLY:
                client = clients[min(SERVICES_ONLY[name(method)] & clients.keys())]
            elif name(method) in ANYONE:
                client = anna.client.with_token(None)
            for body in (*NO_PROTOBUF.values(), *with_invalid_text(method.input_type)):
                try:
                    client.raw(service, path(method), body)
                    accepted.append((name(method), body, "OK"))
                except grpc.RpcError as error:
                    if error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                        accepted.append((name(method), body, error.code().name))
    assert accepted == []


# Missing fields

def registration(people, **changes) -> dict:
    terms = people.anyone.identity.GetLegalDocument(kind="LEGAL_DOCUMENT_KIND_TERMS")
    question = people.anyone.identity.ListSecurityQuestions().questions[0]
    return {"email": "zoe@example.org", "password": PASSWORD, "password_confirmation": PASSWORD, "display_name": "Zoe",
            "security_question_id": question.id, "security_answer": ANSWER, "terms_accepted": True,
            "terms_version": terms.version, **changes}


def refused_without(call, fields: dict, missing, prefix: str = "") -> None:
    """Each field left out in turn is named; all left out at once are all named."""
    for field in missing:
        with expect_error("INVALID_ARGUMENT", field=prefix + field):
            call(**{key: value for key, value in fields.items() if key != field})
    with expect_error("INVALID_ARGUMENT") as failure:
        call(**{key: value for key, value in fields.items() if key not in missing})
    assert {prefix + field for field in missing} <= set(failure.fields)


def test_ID_1_ID_3_registration_names_each_missing_field(people, records):
    fields = registration(people)
    with records.unchanged():
        # Two passwords left out are equal: the first alone is named.
        refused_without(people.anyone.identity.Register, fields, ["password_confirmation"])
        refused_without(people.anyone.identity.Register, fields,
                        [key for key in fields if key not in ("password_confirmation", "terms_version")])
        refused_without(people.anyone.identity.Register, fields, ["terms_version"])


def test_RE_1_RE_2_recipient_names_each_missing_field(anna, records):
    fields = {"name": "Finn", "email": "finn@example.org", "relationship": "RELATIONSHIP_OTHER"}
    with records.unchanged():
        refused_without(anna.client.recipients.AddRecipient, fields, list(fields))


def test_VA_14_VA_15_letter_for_the_vault_names_each_missing_field(anna, records):
    content = letter([anna.recipient_id])

    def save(**fields):
        anna.client.vault.SaveToVault(content=fields)

    with records.unchanged():
        refused_without(save, content, list(content), prefix="content.")
        with expect_error("INVALID_ARGUMENT", field="content"):
            anna.client.vault.SaveToVault()


def test_every_change_names_a_missing_or_malformed_request_id(people, anna, records):
    calls = [lambda **id: people.anyone.identity.Register(**registration(people, email="yan@example.org"), **id),
             lambda **id: anna.client.recipients.CreateGroup(name="Friends", **id),
             lambda **id: anna.client.vault.SaveToVault(content=letter([anna.recipient_id]), **id),
             lambda **id: anna.client.vault.SaveFolderItem(section="FOLDER_SECTION_OTHER", title="X", **id),
             lambda **id: anna.client.confirmation.OpenAttempt(designation_id=anna.designation_id, **id)]
    with records.unchanged():
        for call in calls:
            for request_id in ("", "7", str(uuid.uuid4())[:-1]):
                with expect_error("INVALID_ARGUMENT", field="request_id"):
                    call(request_id=request_id)


# Repeats

def test_request_id_repeated_gives_the_first_answer_and_one_effect(people, anna, eva, records):
    """Also when all repeats come at once, and after what was made has been changed."""
    repeatable = {
        "Register": (people.anyone.identity.Register, registration(people, email="rosa@example.org"),
                     {"display_name": "Rosa Again"}),
        "AddRecipient": (anna.client.recipients.AddRecipient,
                         {"name": "Finn", "email": "finn@example.org", "relationship": "RELATIONSHIP_OTHER",
                          "prompt_channels": ["PROMPT_CHANNEL_EMAIL"]}, {"name": "Fynn"}),
        "CreateGroup": (anna.client.recipients.CreateGroup, {"name": "Choir"}, {"name": "Band"}),
        "SaveToVault": (anna.client.vault.SaveToVault, {"content": letter([anna.recipient_id], title="Once")},
                        {"content": letter([anna.recipient_id], title="Twice")}),
        "SaveFolderItem": (anna.client.vault.SaveFolderItem,
                           {"section": "FOLDER_SECTION_OTHER", "title": "Once"}, {"title": "Twice"}),
        "OpenAttempt": (eva.client.confirmation.OpenAttempt, {"designation_id": anna.designation_id},
                        {"designation_id": str(uuid.uuid4())}),
    }
    for call, fields, other in repeatable.values():
        fields = {**fields, "request_id": str(uuid.uuid4())}
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: call(**fields), range(8)))
        assert all(answer == answers[0] for answer in answers)
        with records.unchanged():
            assert call(**fields) == answers[0]
            with expect_error("INVALID_ARGUMENT", "REQUEST_ID_REUSED", field="request_id"):
                call(**{**fields, **other})
    # One of each, and one mail of each.
    found = anna.client.vault.ListMessages(search="Once").messages
    assert len(found) == 1
    assert [group.name for group in anna.client.recipients.ListGroups().groups].count("Choir") == 1
    assert [item.title for item in anna.client.vault.ListFolderItems().items].count("Once") == 1
    for address in ("rosa@example.org", "finn@example.org"):
        assert len(people.stack.mail.all(address)) == 1
    assert len([mail for mail in people.stack.mail.all(eva.email) if re.search(r"\b\d{6}\b", mail.text)]) == 1


def test_request_id_is_the_callers_own(anna, cleo):
    """Another's request_id neither collides nor shows an answer."""
    request_id = str(uuid.uuid4())
    mine = anna.client.recipients.CreateGroup(name="Neighbours", request_id=request_id).group
    theirs = cleo.client.recipients.CreateGroup(name="Neighbours", request_id=request_id).group
    assert mine.group_id != theirs.group_id


# Texts

@pytest.mark.parametrize("text", ["Anna\r\nBcc: x@example.org", "Anna\nX", "Anna\rX", "Anna\u2028X", "Anna\x00X"],
                         ids=["CRLF", "LF", "CR", "U+2028", "NUL"])
def test_RE_17_name_with_a_line_break_is_refused_and_nothing_is_mailed(people, anna, records, text):
    with records.unchanged():
        with expect_error("INVALID_ARGUMENT", field=None if "\0" in text else "display_name"):
            people.anyone.identity.Register(**registration(people, email="xenia@example.org", display_name=text))
        for email in ("xaver@example.org", "xaver@example.org\r\nBcc: y@example.org"):
            with expect_error("INVALID_ARGUMENT"):
                anna.client.recipients.AddRecipient(
                    name=text, email=email, relationship="RELATIONSHIP_OTHER",
                    prompt_channels=["PROMPT_CHANNEL_EMAIL"])
        with expect_error("INVALID_ARGUMENT"):
            anna.client.confirmation.Designate(administrator={"contact": {"name": text, "email": "x@example.org"}})


def test_RE_5_address_with_a_line_break_is_refused_and_nothing_is_mailed(people, anna, records):
    with records.unchanged():
        for email in ("x@example.org\r\nBcc: y@example.org", "x\n@example.org", "x\r@example.org"):
            with expect_error("INVALID_ARGUMENT", field="email"):
                people.anyone.identity.Register(**registration(people, email=email))
            with expect_error("INVALID_ARGUMENT", field="email"):
                anna.client.recipients.AddRecipient(name="X", email=email, relationship="RELATIONSHIP_OTHER")


def test_VA_2_letter_has_at_most_one_mebibyte(anna, records):
    with records.unchanged():
        for size, code, field in ((5 << 20, "RESOURCE_EXHAUSTED", None), ((1 << 20) + 1, "INVALID_ARGUMENT", "content.body")):
            for save in (anna.client.vault.SaveDraft, anna.client.vault.SaveToVault):
                with expect_error(code, field=field):
                    save(content=letter([anna.recipient_id], body="a" * size))
    # The connection has borne it, and the limit itself is allowed.
    body = "ä" * (1 << 19)
    saved = anna.client.vault.SaveToVault(content=letter([anna.recipient_id], body=body)).message
    assert anna.client.vault.GetMessage(message_id=saved.message_id).message.content.body == body


# Pages

def lists(owner, account_id: str) -> dict:
    return {
        "ListRecipients": owner.client.recipients.ListRecipients,
        "ListMessages": owner.client.vault.ListMessages,
        "ListNotifications": owner.client.notifications.ListNotifications,
        "ListDeliveries": lambda **fields: owner.client.delivery.ListDeliveries(account_id=account_id, **fields),
    }


def test_VA_25_RE_8_page_token_from_elsewhere_is_refused(anna, cleo, records):
    mine, theirs = lists(anna, anna.person.account_id), lists(cleo, cleo.person.account_id)
    for call, filters in (("ListRecipients", {"search": "of"}), ("ListMessages", {"status": "MESSAGE_STATUS_READY"})):
        token = mine[call](page_size=1).next_page_token
        rest = mine[call](page_token=token)
        assert token and rest
        tampered = [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1:]
                    for at in (0, len(token) // 2, len(token) - 2)]
        bad = [lambda token=token: mine[call](page_token=token) for token in (*tampered, token[:-4], token * 2, "x", "ä")]
        bad += [lambda: theirs[call](page_token=token), lambda: mine[call](page_token=token, **filters)]
        bad += [lambda other=other: mine[other](page_token=token) for other in mine if other not in (
            call, "ListDeliveries")]
        with records.unchanged():
            for ask in bad:
                with expect_error("INVALID_ARGUMENT", field="page_token"):
                    ask()


def test_VA_25_RE_8_NO_10_negative_page_size_is_refused(anna, records):
    with records.unchanged():
        for call, ask in lists(anna, anna.person.account_id).items():
            if call != "ListDeliveries":
                for size in (-1, -(2**31)):
                    with expect_error("INVALID_ARGUMENT", field="page_size"):
                        ask(page_size=size)
