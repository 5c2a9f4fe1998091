"""Passwords, PINs, card numbers and keys are concluded from no turn, and told from other codes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest

from engram.agents.extraction import ExtractionAgent, read
from engram.agents.requests import (
    ExtractionAnswer,
    ExtractionRequest,
    StatedKnowledge,
    TurnView,
)
from engram.agents.rules import extract as by_rule
from engram.contracts.consolidation import ExtractOutput
from engram.language.extractor import Extractor
from engram.language.kinds import kind_words
from engram.language.personal_data import secrets_in
from engram.settings import Settings
from tests.support.example_memories import episode
from tests.support.scripted_model import scripted

NOW = datetime(2026, 10, 2, 9, tzinfo=UTC)
EXTRACTOR = Extractor(Settings())

TELLING = [
    "My password is Kaffee!2019Basel and it says it's wrong.",
    "My password is Tr0ub4dor&3!x and it fails.",
    "My password is swordfish.",
    "Our new wifi password is Pepper2024!",
    "Tom's password is hunter22.",
    "The password of the router is Mint44.",
    "I changed my password to Mint44.",
    "I use the password Mint44 everywhere.",
    "I don't use the password Mint44 any more.",
    "My password isn't Mint44, it's Mint45.",
    "We decided to use Pepper2024! as the wifi password.",
    "Our wifi is called Pepper and the password is Mint44.",
    "My PIN is 7741.",
    "The PIN of my Visa is 4419.",
    "Remember that my PIN is 4419.",
    "My mother's PIN is 4419.",
    "My phone's passcode is 889912.",
    "My CVV is 123.",
    "My card number is 4111 1111 1111 1111.",
    "My card number is 4111 1111 1111 1112.",
    "My credit card is 4111 1111 1111 1111.",
    "My API key is tulip.",
    "My secret key is blue-fox-77.",
    "Our gate code is 9921.",
    "The code for the front door is 4471.",
    "My seed phrase is Apple Pear Plum.",
    "My PIN is 4419, I always type 4419 twice.",
    "My gate code is 4471. From now on use 4471 for the door, too.",
    "The door code is 4471. I use 4471 everywhere.",
    "My PIN is 1985. My phone opens with 1985.",
]


@pytest.mark.parametrize("said", TELLING)
def test_a_secret_is_no_conclusion(said: str) -> None:
    """Neither a statement, a fact nor a denial, whole or cut off; the turn itself stays."""
    found = EXTRACTOR.extract(said, "user", None, NOW)
    assert _told(said) == []
    assert [fact.content for fact in found.facts] == []
    assert [one.content for one in found.negations] == []


HARMLESS = [
    ("My password manager is Bitwarden.", "The user's password manager is Bitwarden."),
    ("My password manager is 1Password.", "The user's password manager is 1Password."),
    ("The password is stored in 1Password.", "The password is stored in 1Password."),
    ("The deploy key is in Vault.", "The deploy key is in Vault."),
    ("My key account manager is Tom.", "The user's key account manager is Tom."),
    ("My postcode is 4052.", "The user's postcode is 4052."),
    ("My zip code is 12345.", "The user's zip code is 12345."),
    ("My dress code is casual.", "The user's dress code is casual."),
    ("My area code is 030.", "The user's area code is 030."),
    ("My booking code is AB12CD.", "The user's booking code is AB12CD."),
    ("My discount code is SUMMER24.", "The user's discount code is SUMMER24."),
    ("My library card number is 77812.", "The user's library card number is 77812."),
    ("My membership number is 884-21.", "The user's membership number is 884-21."),
    ("My account number is 12345678.", "The user's account number is 12345678."),
    (
        "My IBAN is CH93 0076 2011 6238 5295 7.",
        "The user's IBAN is CH93 0076 2011 6238 5295 7.",
    ),
    (
        "My username is hanna and my password is Mint44.",
        "The user's username is hanna.",
    ),
    ("I live in Porto. My PIN is 7741.", "The user lives in Porto."),
    ("I'm allergic to nuts, and the door code is 4471.", "The user is allergic to nuts."),
    ("My wifi is called Kraken.", "The user's wifi is called Kraken."),
    ("My shoe size is 42.", "The user's shoe size is 42."),
    ("I use Bitwarden.", "The user uses Bitwarden."),
    ("My room number is 4419.", "The user's room number is 4419."),
    (
        "I live at Seestrasse 4471 and my door code is 4471.",
        "The user's address is Seestrasse 4471.",
    ),
    ("My PIN is 1234. I live at Gartenweg 1234.", "The user's address is Gartenweg 1234."),
    ("My safe code is 221. I live at 221 Baker Street.", "The user's address is 221 Baker Street."),
    ("My garage code is 1985. I was born in 1985.", "The user was born in 1985."),
    ("My PIN is 2008. I drive a Peugeot 2008.", "The user drives a Peugeot 2008."),
    ("I use LastPass1 as my password app.", "The user uses LastPass1."),
    ("I use Bitwarden2 as the password tool.", "The user uses Bitwarden2."),
    ("I use YubiKey5 as a password replacement.", "The user uses YubiKey5."),
]


@pytest.mark.parametrize(("said", "told"), HARMLESS)
def test_what_opens_nothing_is_concluded(said: str, told: str) -> None:
    """What has a number or a code, and what is told beside a secret, also in the same digits."""
    assert told in _told(said)


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("PIN for the hotline was 7741.", "7741"),
        ("New PIN: 4419, please.", "4419"),
        ("My phone's PIN is 889912", "889912"),
        ("pin code 4419", "4419"),
        ("The PUK is 12345678.", "12345678"),
        ("cvv 123", "123"),
        ("The alarm code is 4471#.", "4471#"),
        ("gate code 4471*", "4471*"),
        ("The door code changed to 9921.", "9921"),
        ("The code for the front door is 4471.", "4471"),
        ("The combination of the safe is 12-34-56.", "12-34-56"),
        ("Our garage code: 99210", "99210"),
        ("key box code is B4471", "B4471"),
        ("the security code is 981", "981"),
        ("WiFi for the guests is Pepper2024!", "Pepper2024!"),
        ("Wi-Fi at the cabin: elk-elk-9", "elk-elk-9"),
        ("wlan: Sonne-2024-x", "Sonne-2024-x"),
        ("Use Pepper2024! as the wifi password.", "Pepper2024!"),
        ('"Mint44" is my new password', "Mint44"),
        ("The password isn't Mint44.", "Mint44"),
        ("Use Mint4455 as the password, tool or no tool.", "Mint4455"),
        ("Mint4455 is the password store it well.", "Mint4455"),
        ("my locker combination is 12-34-56", "12-34-56"),
    ],
)
def test_codes_and_networks_are_secrets(said: str, secret: str) -> None:
    """What opens a door, a phone or an account, to the letter."""
    assert secrets_in(said) == {secret}


@pytest.mark.parametrize(
    "said",
    [
        "My locker code has four digits and I mix them up.",
        "the wifi in this café is powered by hamsters",
        "the wifi is WPA2-protected",
        "the wifi is awful",
        "My wifi: 300 Mbit",
        "What is the pin, 2023?",
        "my pin board has 20 pins",
        "Drop a pin 1500 m ahead.",
        "In my opinion 2024 was better.",
        "The error code is 500.",
        "The area code is 030.",
        "My postcode is 40521.",
        "The access code was used 1500 times.",
        "The country code is 49.",
        "booking code: AB12CD",
        "The QR code is 300 px wide.",
        "My password manager is 1Password.",
        "The iPhone15 is my password manager.",
        "I keep LastPass1 as my password vault.",
        "The dress code is casual.",
        "The spinning class at 1830 is full.",
        "The door was open at 1930.",
    ],
)
def test_what_opens_nothing_is_no_secret(said: str) -> None:
    """Other codes, other numbers, and what is said of networks and pins."""
    assert secrets_in(said) == frozenset()


def _told(text: str) -> list[str]:
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=NOW, content=text)
    return [
        one.content for one in _read(text, by_rule(ExtractionRequest(turns=(turn,)))).statements
    ]


def _read(text: str, answer: ExtractionAnswer) -> ExtractOutput:
    return read(answer, {"e1": episode("e1", content=text)}, kind_words())


@pytest.mark.parametrize(
    "told",
    [
        {"content": "The user's router password is swordfish."},
        {"content": "The password of the user's router: swordfish"},
        {"content": "The user unlocks the door with 4471."},
        {"content": "The user set it.", "predicate": "password is", "object": "swordfish"},
        {"content": "The user opens the door.", "predicate": "opens with", "object": "4471"},
    ],
)
def test_a_model_that_concludes_a_secret_is_not_believed(told: dict[str, Any]) -> None:
    """In its own words, or in what it states of somebody; what else it says is known."""
    text = "My router password is swordfish, the door code is 4471, and I live in Bern."
    harmless: dict[str, Any] = {
        "content": "The user lives in Bern.",
        "predicate": "lives in",
        "object": "Bern",
    }
    statements = [
        StatedKnowledge(subject="user", sources=["e1"], quotes=[text], confidence=0.9, **one)
        for one in (told, harmless)
    ]
    output = _read(text, ExtractionAnswer(reasoning="", statements=statements))
    assert [one.content for one in output.statements] == ["The user lives in Bern."]
    assert (output.dropped_secrets, output.dropped_unattested) == (1, 0)


@pytest.mark.parametrize(
    ("asked", "answer", "told"),
    [
        ("What is your wifi password?", "Hunter2!blue", "The user's wifi is safe by Hunter2!blue."),
        ("What is your PIN?", "It's 4471.", "The user pays with 4471."),
        ("Tell me the code of the front door.", "Sure, 4471", "The user opens with 4471."),
        ("What is your PIN?", "I live at 4471 Oak Road.", None),
        ("How many steps was it?", "4471", None),
    ],
)
def test_a_secret_may_be_told_by_the_answer_alone(
    asked: str, answer: str, told: str | None
) -> None:
    """What it is, only the question says; another number is concluded."""
    content = told or f"The user says {answer}"
    one = StatedKnowledge(content=content, sources=["e2"], quotes=[answer], confidence=0.9)
    before = episode("e1", content=asked).model_copy(update={"role": "assistant"})
    shown = {"e1": before, "e2": episode("e2", content=answer)}
    output = read(ExtractionAnswer(reasoning="", statements=[one]), shown, kind_words())
    assert (len(output.statements), output.dropped_secrets) == ((0, 1) if told else (1, 0))


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        ("The user's master passphrase is 'correct horse battery staple'.", True),
        ("The user's passphrase is correct horse battery staple.", True),
        ("The password of the user's mother is “open sesame”.", True),
        ("The user's seed phrase: apple pear plum fig", True),
        ("The user's passphrase is stored in 1Password.", False),
        ("The user's seed phrase is on paper in the safe.", False),
    ],
)
def test_a_passphrase_has_several_words(content: str, secret: bool) -> None:
    """In quotation marks, or right behind what it is called; where it is kept is no secret."""
    one = StatedKnowledge(content=content, sources=["e1"], confidence=0.9)
    output = _read("So it is.", ExtractionAnswer(reasoning="", statements=[one]))
    assert output.dropped_secrets == secret


@pytest.mark.parametrize(
    ("turn", "content", "predicate", "thing"),
    [
        ("My API key is expired.", "The user's API key is expired.", None, None),
        ("My API key is expired.", "The user's API key is expired.", "API key is", "expired"),
        ("My password is compromised.", "The user's password is compromised.", None, None),
        ("My PIN is blocked.", "The user's PIN is blocked.", None, None),
        ("My licence key is invalid.", "The user's licence key is invalid.", None, None),
        (
            "The secret to my sourdough is patience.",
            "The secret to the user's sourdough is patience.",
            None,
            None,
        ),
        (
            "The secret to my sourdough is 72h.",
            "The secret to the user's sourdough is 72h.",
            None,
            None,
        ),
        (
            "My favourite crypto token is Solana.",
            "The user's favourite crypto token is Solana.",
            "favourite token is",
            "Solana",
        ),
    ],
)
def test_how_it_is_with_a_secret_is_none(
    turn: str, content: str, predicate: str | None, thing: str | None
) -> None:
    """What has expired opens nothing, nor does a recipe's secret or a token that is traded."""
    one = StatedKnowledge(
        content=content, subject="user", predicate=predicate, object=thing, sources=["e1"],
        quotes=[turn], confidence=0.9,
    )  # fmt: skip
    output = _read(turn, ExtractionAnswer(reasoning="", statements=[one]))
    assert (len(output.statements), output.dropped_secrets) == (1, 0)


@pytest.mark.parametrize(
    ("content", "predicate", "thing"),
    [
        ("The user's password is swordfish, and it is valid.", "password is", "swordfish"),
        ("The user's API key is expired.", "API key is", "swordfish"),
        ("The user's password is 'new'.", None, None),
        ("The user's GitHub token is tulip", None, None),
        ("The user's token is eyJhbGci", None, None),
        ("The user's token is t-77.", None, None),
        ("The user's secret is tulip7", None, None),
        ("The user has a token.", "token is", "eyJhbGci"),
    ],
)
def test_what_opens_something_stays_a_secret(
    content: str, predicate: str | None, thing: str | None
) -> None:
    """Whatever else is said of it, and by the form of the value where the word may mean less."""
    one = StatedKnowledge(
        content=content, subject="user", predicate=predicate, object=thing, sources=["e1"],
        confidence=0.9,
    )  # fmt: skip
    output = _read("So it is.", ExtractionAnswer(reasoning="", statements=[one]))
    assert output.dropped_secrets == 1


def test_names_and_tags_tell_no_secret() -> None:
    """They are left out of a statement that tells none itself, and the others stay."""
    text = "My wifi password is Hunter2!blue and I live in Oslo."
    one = StatedKnowledge(
        content="The user has a wifi network.",
        sources=["e1"],
        quotes=[text],
        entities=["Hunter2!blue", "Oslo"],
        tags=["hunter2!blue", "home"],
        confidence=0.9,
    )
    (read_one,) = _read(text, ExtractionAnswer(reasoning="", statements=[one])).statements
    assert (read_one.entities, read_one.tags) == (("Oslo",), ("home",))


async def test_a_model_is_told_to_state_no_secret() -> None:
    """By instructions with a version of their own."""
    model, asked = scripted({"reasoning": "", "statements": []})
    output = await ExtractionAgent(model).extract([episode("e1", content="My PIN is 7741.")])
    (request,) = asked[0]
    assert isinstance(request, ModelRequest)
    assert "passwords, PINs, card numbers or keys" in (request.instructions or "")
    assert output.use is not None
    assert output.use.instructions_version == "extraction-6"
