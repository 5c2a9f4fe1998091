"""Who asks for their own address, number or name gets it before all that were mentioned."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.memories import DerivedMemory
from engram.domain.scope import Scope
from engram.language.query import asks_for_own
from engram.recall.context import Briefing
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

SAID = (
    "I'm Hanna Weiss. My email is hanna@weiss.example and my work email is hw@lab.example.",
    "My phone number is +41 44 668 18 00.",
    "Please answer this mail from care@brevia.example for me.",
    "ask info@school.example about it, or call +41 44 668 18 11, the email is urgent",
    'user_id=4421 name="Karin Lund" action=login, what is the name?',
    "Can you answer this?\n\n> My name is Peter Falk, my email is peter@x.example.",
)


async def told(repository: EdgeRepository, *said: str) -> tuple[InProcessMemory, Scope]:
    """A memory and a user who said that, a day apart."""
    memory, scope = InProcessMemory(repository), Scope.of("own", uuid4().hex)
    for number, words in enumerate(said):
        ids = await memory.hear(scope, [words], number, at=day(number), session=f"s{number}")
        await memory.conclude(scope, ids, day(number))
    return memory, scope


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What is the user's email?", "hanna@weiss.example"),
        ("What is my email?", "hanna@weiss.example"),
        ("What is my work email?", "hw@lab.example"),
        ("How can I reach the user by mail?", "hanna@weiss.example"),
        ("What is the user's phone number?", "44 668 18 00"),
        ("What is my number?", "44 668 18 00"),
        ("What is the user's name?", "Hanna Weiss"),
        ("What am I called?", "Hanna Weiss"),
        ("What is Hanna's email?", "hanna@weiss.example"),
    ],
)
async def test_ones_own_comes_first(repository: EdgeRepository, query: str, first: str) -> None:
    """However often others were mentioned since, and in whatever words."""
    memory, scope = await told(repository, *SAID)
    found = await memory.recall(scope, query, NOW)
    assert isinstance(found[0].memory, DerivedMemory)
    assert first.replace(" ", "") in found[0].memory.content.replace(" ", "")


async def test_an_address_that_was_replaced_is_not_put_first(repository: EdgeRepository) -> None:
    """What holds now is one's own."""
    memory, scope = await told(
        repository, "My email is old@weiss.example.", "My new email is new@weiss.example."
    )
    found = await memory.recall(scope, "What is my email?", NOW)
    assert found[0].memory.content == "email address: new@weiss.example"


async def test_who_asks_for_anothers_address_gets_no_own_first(
    repository: EdgeRepository,
) -> None:
    """It is moved only where it is asked for."""
    memory, scope = await told(repository, *SAID)
    found = await memory.recall(scope, "What is the email address of the school?", NOW)
    assert found[0].memory.content != "email address: hanna@weiss.example"


async def test_a_briefing_tells_no_address_of_nobody(repository: EdgeRepository) -> None:
    """What was only mentioned may be anybody's."""
    memory, scope = await told(repository, *SAID)
    briefing = Briefing(repository, memory.settings.lifecycle_rules, memory.recaller.negations, 100)
    said = {one.memory.content for one in await briefing.of(scope, day(9), 50)}
    addresses = {one for one in said if one.startswith(("email", "phone", "name"))}
    assert addresses == {
        "email address: hanna@weiss.example",
        "email address: hw@lab.example",
        "phone number: +41446681800",
        "name: Hanna Weiss",
    }


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ("What is the user's email?", {"email"}),
        ("what's my e-mail address", {"email"}),
        ("my email", {"email"}),
        ("What is my work email?", {"email"}),
        ("Remind me of my email address.", {"email"}),
        ("Which email address does the user use?", {"email"}),
        ("How can I reach the user by mail?", {"email"}),
        ("What is my email and name?", {"email", "name"}),
        ("What's my name and phone number?", {"name", "phone"}),
        ("Do you know my number?", {"phone"}),
        ("Tell me my phone number again.", {"phone"}),
        ("What phone number do I have?", {"phone"}),
        ("Do you still have my mobile number?", {"phone"}),
        ("What\u2019s the user\u2019s phone number?", {"phone"}),
        ("Who am I?", {"name"}),
        ("What am I called?", {"name"}),
        ("Give me my full name.", {"name"}),
        ("What is my address?", {"address"}),
        ("What's our home address?", {"address"}),
        ("What is the user's website?", {"site"}),
        ("What's my blog, please?", {"site"}),
    ],
)
def test_ones_own_is_asked_for(query: str, kinds: set[str]) -> None:
    """By the user, or by an application that asks of them."""
    assert asks_for_own(query) == kinds


@pytest.mark.parametrize(
    "query",
    [
        "What is my dog's name?",
        "What is my sister's email?",
        "What's my dentist's phone number?",
        "What's the phone number of my doctor?",
        "What is the name of my school?",
        "What is Tom's address?",
        "What is your name?",
        "What is the project's name?",
        "Did Tom read my email?",
        "What did I say in my email?",
        "Which email did I get from Tom?",
        "Who is my email provider?",
        "What's in my address book?",
        "What is my account number?",
        "What is my phone?",
        "What is my phone bill?",
        "What is my name day?",
        "What is my favourite site to hike?",
        "Where do I live?",
        "Who called me?",
        "Can I email you?",
        "How did I reach the summit?",
    ],
)
def test_other_questions_ask_for_none(query: str) -> None:
    """Others' addresses, what was written, and what only has such a word."""
    assert asks_for_own(query) == frozenset()
