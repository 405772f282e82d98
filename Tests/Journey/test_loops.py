"""No call blocks an event loop: heavy work runs in the pool, and the loop goes on answering."""

from concurrent.futures import ThreadPoolExecutor

from rig.journey import ANSWER, PASSWORD

#: A registration hashes twice, each for about a quarter of a second; a blocked loop would answer between hashes at most.
REGISTRATIONS = 10
ANSWERED_AT_LEAST = 10 * 2 * REGISTRATIONS


def test_ID_11_short_calls_are_answered_while_ten_passwords_are_hashed(anyone):
    terms = anyone.identity.GetLegalDocument(kind="LEGAL_DOCUMENT_KIND_TERMS")
    question = anyone.identity.ListSecurityQuestions().questions[0]

    def register(number: int):
        return anyone.identity.Register(
            email=f"busy{number}@example.org", password=PASSWORD, password_confirmation=PASSWORD,
            display_name=f"Busy {number}", security_question_id=question.id, security_answer=ANSWER,
            terms_accepted=True, terms_version=terms.version, time_zone="UTC")

    with ThreadPoolExecutor(REGISTRATIONS) as pool:
        registrations = [pool.submit(register, number) for number in range(REGISTRATIONS)]
        answered = 0
        while not all(registration.done() for registration in registrations):
            assert anyone.identity.ListSecurityQuestions().questions
            answered += 1
        accounts = {registration.result().account.account_id for registration in registrations}
    assert len(accounts) == REGISTRATIONS
    assert answered >= ANSWERED_AT_LEAST
