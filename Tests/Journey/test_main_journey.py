"""The main journey: each test asks for the step that it is about; the steps before it are walked on the way."""

import base64
import hashlib
import re
import urllib.request

import pytest
from rig.client import expect_error
from rig.journey import ANSWER, FOLDER_TITLE, LETTER_BODY, LETTER_TITLE, PASSWORD, Journey
from rig.layout import SERVICES


@pytest.fixture(scope="module")
def journey(stack, browser):
    return Journey(stack, browser, patience=10)


def registration(journey, **changes) -> dict:
    terms = journey.anyone.identity.GetLegalDocument(kind="LEGAL_DOCUMENT_KIND_TERMS")
    question = journey.anyone.identity.ListSecurityQuestions().questions[0]
    return {
        "email": "zoe@example.org", "password": PASSWORD, "password_confirmation": PASSWORD, "display_name": "Zoe",
        "security_question_id": question.id, "security_answer": ANSWER, "terms_accepted": True,
        "terms_version": terms.version, **changes,
    }


@pytest.mark.parametrize("field,value", [
    ("email", ""), ("password", ""), ("password_confirmation", "something else"), ("display_name", ""),
    ("security_question_id", ""), ("security_answer", "")])
def test_ID_1_registration_refuses_a_missing_field_and_names_it(journey, field, value):
    with expect_error("INVALID_ARGUMENT", field=field):
        journey.anyone.identity.Register(**registration(journey, **{field: value}))


def test_ID_2_registration_refuses_a_malformed_and_a_used_address(journey):
    with expect_error("INVALID_ARGUMENT", field="email"):
        journey.anyone.identity.Register(**registration(journey, email="not an address"))
    with expect_error("ALREADY_EXISTS", "EMAIL_TAKEN"):
        journey.anyone.identity.Register(**registration(journey, email=journey.author.email.upper()))


def test_ID_3_registration_needs_the_terms_accepted(journey):
    with expect_error("INVALID_ARGUMENT", field="terms_accepted"):
        journey.anyone.identity.Register(**registration(journey, terms_accepted=False))


def test_ID_4_ID_5_registration_gives_an_id_and_mails_a_link(journey):
    account = journey.author.client.identity.GetAccount().account
    assert account.account_id == journey.author.account_id and len(account.account_id) == 36
    assert journey.author.verification.link.startswith(journey.stack.layout.public_url + "/")


def test_ID_6_mailed_link_verifies_the_address_once(journey):
    assert journey.is_verified(journey.author)
    with expect_error("NOT_FOUND"):
        journey.anyone.identity.VerifyEmail(token=journey.author.verification.token)


def test_ID_11_wrong_credentials_open_no_session(journey):
    for email, password in ((journey.author.email, "not the password"), ("nobody@example.org", PASSWORD)):
        with expect_error("UNAUTHENTICATED", "BAD_CREDENTIALS"):
            journey.anyone.identity.LogIn(email=email, password=password)


def test_RE_1_RE_3_recipient_has_name_address_and_group(journey):
    clara = journey.recipients["Clara"]
    found = journey.author.client.recipients.GetRecipient(recipient_id=clara.recipient_id).recipient
    assert (found.name, found.email, list(found.group_ids)) == ("Clara Lindqvist", "clara@example.org", [journey.group])


def test_RE_2_recipient_needs_a_relationship(journey):
    with expect_error("INVALID_ARGUMENT", field="relationship"):
        journey.author.client.recipients.AddRecipient(name="Finn", email="finn@example.org")


def test_RE_4_prompt_goes_only_to_whom_it_was_asked_for(journey):
    assert journey.prompt.to == "ben@example.org"
    assert [mail.to for mail in journey.mail.all(subject=journey.prompt.subject)] == ["ben@example.org"]


def test_RE_12_group_name_is_unique_and_members_are_kept(journey):
    assert journey.recipients
    group = journey.author.client.recipients.GetGroup(group_id=journey.group).group
    assert set(group.recipient_ids) == {journey.recipients[name].recipient_id for name in ("Clara", "David")}
    with expect_error("ALREADY_EXISTS", "GROUP_NAME_TAKEN"):
        journey.author.client.recipients.CreateGroup(name="FAMILY")


def test_RE_17_prompt_names_the_sender(journey):
    assert "Anna Lindqvist" in journey.prompt.text


def test_RE_18_accepting_needs_no_account_and_shows_to_the_author(journey):
    assert journey.accepted


def test_VA_18_saving_to_the_vault_needs_an_administrator(journey):
    assert journey.refused_without_administrator


def test_CO_1_CO_2_designation_is_one_administrator(journey):
    assert journey.designation
    found = journey.author.client.confirmation.GetDesignations().designations
    assert [designation.contact.email for designation in found] == ["eva@example.org"]


def test_CO_3_designation_is_told_by_mail(journey):
    assert "Anna Lindqvist" in journey.role_mail.text


def test_CO_7_administrator_sees_who_designated_them(journey):
    assert journey.verification.display_name == "Anna Lindqvist"


def test_VA_2_letter_keeps_its_formatting(journey):
    message = journey.author.client.vault.GetMessage(message_id=journey.letter.message_id).message
    assert (message.content.title, message.content.body) == (LETTER_TITLE, LETTER_BODY)


def test_VA_12_VA_19_VA_24_vault_counts_drafts_and_ready_messages(journey):
    assert (journey.summary.total, journey.summary.ready, journey.summary.drafts) == (4, 3, 1)


def test_VA_25_list_shows_every_message(journey):
    assert journey.summary
    titles = [message.content.title for message in journey.author.client.vault.ListMessages().messages]
    assert titles == ["Not for anyone", "Your birthday", "One month on", LETTER_TITLE]


def refused_without(journey, field):
    assert journey.designation
    content = {key: value for key, value in journey.letter_content().items() if key != field}
    with expect_error("INVALID_ARGUMENT", field=f"content.{field}"):
        journey.author.client.vault.SaveToVault(content=content)


def test_VA_14_saving_to_the_vault_needs_a_title(journey):
    refused_without(journey, "title")


def test_VA_15_saving_to_the_vault_needs_a_delivery_condition(journey):
    refused_without(journey, "delivery_condition")


def test_CO_8_only_the_administrator_opens_an_attempt(journey):
    with expect_error("NOT_FOUND"):
        journey.author.client.confirmation.OpenAttempt(designation_id=journey.verification.designation_id)


def test_CO_9_attempt_explains_what_cannot_be_undone(journey):
    assert "undone" in journey.attempt.explanation or "irreversible" in journey.attempt.explanation


def test_CO_10_confirming_needs_the_challenge(journey):
    assert journey.attempt and "challenge" not in journey.__dict__
    with expect_error("FAILED_PRECONDITION", "CHALLENGE_REQUIRED"):
        journey.confirm()


def test_DE_1_nothing_is_delivered_before_the_confirmation(journey):
    assert journey.challenge and "confirmation" not in journey.__dict__
    assert journey.mail.all("clara@example.org") == []


def test_CO_12_CO_15_confirmation_is_recorded_once(journey):
    first = journey.confirmation
    assert first.summary and journey.confirm().confirm_time == first.confirm_time


def test_OP_16_after_the_confirmation_the_author_is_locked(journey):
    assert journey.confirmation
    with expect_error("FAILED_PRECONDITION", "ACCOUNT_CLOSED"):
        journey.anyone.identity.LogIn(email=journey.author.email, password=PASSWORD)


def test_DE_2_DE_3_DE_8_DE_9_letter_reaches_each_recipient_once(journey):
    assert journey.sent
    for name, mail in journey.letters.items():
        fits = [other for other in journey.mail.all(mail.to) if other.message_id == mail.message_id]
        assert len(fits) == 1, name


def test_DE_10_mail_has_a_secure_link_and_no_content(journey):
    links = {mail.link for mail in journey.letters.values()}
    assert len(links) == 3
    assert all("garden" not in mail.text and LETTER_TITLE not in mail.text for mail in journey.letters.values())


def test_DE_11_DE_12_looking_changes_nothing_and_opening_marks_as_viewed(journey):
    assert journey.sent
    if "page" not in journey.__dict__:
        for method in ("HEAD", "GET", "GET"):
            request = urllib.request.Request(journey.letters["Ben"].link, method=method)
            with urllib.request.urlopen(request) as answer:
                assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
        assert "VIEWED" not in journey.statuses()
    assert journey.viewed


def test_DE_15_page_shows_sender_title_text_and_date(journey):
    for text in ("Anna Lindqvist", LETTER_TITLE, "Do not be sad for too long.", "The key is under the stone."):
        assert text in journey.page
    for markup in ("<strong>too long</strong>", "<em>garden</em>", "<li>", 'href="https://example.org/piano"'):
        assert markup in journey.page_source
    assert str(journey.confirmation.confirm_time.ToDatetime().year) in journey.page


def test_DE_16_acknowledging_is_recorded(journey):
    assert journey.acknowledged


def test_DE_4_DE_5_notes_stand_in_the_schedule_and_the_draft_does_not(journey):
    assert journey.schedule == journey.expected_due_times()
    assert all("never leave" not in mail.text for mail in journey.mail.all())


def mailed_tokens(journey) -> list:
    """The secrets of every link that was mailed."""
    return [mail.token for mail in journey.mail.all() if mail.links]


def test_VA_6_dump_of_the_database_holds_no_content_or_secret_in_clear(cluster, journey):
    """Titles may: the search covers them (OP-26)."""
    assert journey.acknowledged and journey.folder_item
    dump = cluster.dump(journey.stack.layout.database)
    assert journey.letter.message_id in dump and journey.folder_item.item_id in dump
    contents = ["garden", "under the stone", "whoever plays", "example.org/piano", "Many happy returns", "never leave"]
    folder = [FOLDER_TITLE, "Schubert", "wear black"]
    answers = [PASSWORD, ANSWER, ANSWER.lower(), ANSWER.upper()]
    tokens = [*mailed_tokens(journey), *journey.session_tokens]
    assert len(mailed_tokens(journey)) == 6 and len(tokens) == 18
    # A token of 32 bytes might also stand as these.
    raw = [base64.urlsafe_b64decode(token + "=").hex() for token in tokens if len(token) == 43]
    assert [secret for secret in (*contents, *folder, *answers, *tokens, *raw) if secret in dump] == []


def test_OP_39_dump_of_the_database_holds_the_code_only_as_a_keyed_digest(cluster, journey):
    assert journey.challenge
    dump = cluster.dump(journey.stack.layout.database)
    assert journey.attempt.attempt_id in dump
    # As a value of its own: any six digits may stand in a time.
    assert re.findall(rf"(?<![\w.]){journey.code}(?!\w)", dump) == []
    assert hashlib.sha256(journey.code.encode()).hexdigest() not in dump


def test_no_log_holds_an_address_a_title_or_a_token(journey):
    assert journey.acknowledged
    words = ["@example.org", "garden", LETTER_TITLE, FOLDER_TITLE, "Schubert", PASSWORD, ANSWER,
             *mailed_tokens(journey), *journey.session_tokens]
    for name in SERVICES:
        log = journey.stack.log(name)
        assert [word for word in words if word in log] == [], name
