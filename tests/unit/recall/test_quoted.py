"""Words that a user quotes or pastes: never told as if he had said them of himself."""

from __future__ import annotations

from uuid import uuid4

from engram.digests.profiles import answers as answers_in_digests
from engram.domain.memories import DerivedMemory, MemoryForm, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.recall.context import Briefing, block_of
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

ADVERT = "I live in the heart of town and I love the light"
SAID = (
    f'The advert for the flat says "{ADVERT}", which is a bit much.',
    "I live in Ghent. My dentist is Dr. Weiss.",
)


async def told(repository: EdgeRepository, *said: str) -> tuple[InProcessMemory, Scope]:
    """A memory and a user who said that, a day apart."""
    memory, scope = InProcessMemory(repository), Scope.of("quoted", uuid4().hex)
    for number, words in enumerate(said):
        ids = await memory.hear(scope, [words], number, at=day(number), session=f"s{number}")
        await memory.conclude(scope, ids, day(number))
    return memory, scope


async def test_a_quotation_stands_behind_the_turn_that_quotes_it(
    repository: EdgeRepository,
) -> None:
    """Only the turn tells whose words they are; alone, they still answer who asks for them."""
    memory, scope = await told(repository, *SAID)
    found = await memory.recall(scope, "Where do I live?", NOW)
    answers = [hit.memory.content for hit in found]
    assert answers.index(SAID[0]) < answers.index(ADVERT)
    assert answers[0] == "The user lives in Ghent."
    kept = await memory.recall(scope, "the heart of town", NOW, forms=(MemoryForm.ARTIFACT,))
    assert ADVERT in [hit.memory.content for hit in kept]


async def test_in_a_context_a_quotation_is_marked_and_told_once(
    repository: EdgeRepository,
) -> None:
    """With its turn it is left out; without, it stands among what was said, as quoted."""
    memory, scope = await told(repository, *SAID)
    found = await memory.recall(scope, "Where do I live?", NOW)
    lines = block_of(found, tokens=600).splitlines()
    assert sum(ADVERT in line for line in lines) == 1
    alone = [hit for hit in found if isinstance(hit.memory, DerivedMemory)]
    lines = block_of(alone, tokens=600).splitlines()
    assert [line.startswith(f"- {ADVERT} (quoted 2024-01-01") for line in lines].index(True) == (
        len(lines) - 2
    )


async def test_a_denial_beside_a_statement_of_it_is_told_once(repository: EdgeRepository) -> None:
    """What "dislikes gin" says is not said again; a denial that nothing else says stays."""
    memory, scope = await told(repository, "I don't like gin.", "Bo does not drink wine.")
    found = await memory.recall(scope, "gin and wine", NOW)
    answers = [hit.memory.content for hit in found]
    assert "The user does not like gin." in answers
    block = block_of(found, tokens=600)
    assert "The user dislikes gin." in block
    assert "The user does not like gin." not in block
    assert "Bo does not drink wine. (denied" in block


async def test_a_briefing_tells_no_quotation_no_bare_date_and_last_what_is_over(
    repository: EdgeRepository,
) -> None:
    """Quoted words, dates and sums say nothing by themselves; an address does."""
    memory, scope = await told(
        repository,
        *SAID,
        "I work at Acme. My email is ada@example.org, the fee was 40 euros on May 3.",
        "I no longer work at Acme.",
    )
    rules = memory.settings.lifecycle_rules
    told_first = await Briefing(repository, rules, memory.recaller.negations, 100).of(
        scope, day(5), 20
    )
    words = [one.memory.content for one in told_first]
    assert "The user lives in Ghent." in words
    assert "email address: ada@example.org" in words
    assert words[-1] == "The user no longer works at Acme."
    assert not [
        one for one in words if "heart of town" in one or one.startswith(("date", "amount"))
    ]


async def test_a_briefing_names_whom_it_tells_of(repository: EdgeRepository) -> None:
    """Nobody can tell who "she" is where nothing else of the conversation is told."""
    memory, scope = await told(repository, "Ana called again. She's my sister.", "Bo is my cousin.")
    asked = await memory.recall(scope, "Who is my sister?", NOW)
    assert "She is the user's sister." in [hit.memory.content for hit in asked]
    briefing = Briefing(repository, memory.settings.lifecycle_rules, memory.recaller.negations, 100)
    said = [one.memory.content for one in await briefing.of(scope, NOW, 10)]
    assert said == ["Bo is the user's cousin."]


async def test_no_profile_is_composed_of_quotations(repository: EdgeRepository) -> None:
    """They are kept, and stand in no digest."""
    memory, scope = await told(
        repository, 'Bo wrote "I am Hanna Berg and I live in far Norway now".'
    )
    page = await memory.repository.scroll(scope, MemoryType.SEMANTIC, limit=50)
    known = [one for one in page.memories if isinstance(one, SemanticMemory)]
    assert [one.form for one in known] == [MemoryForm.ARTIFACT]
    assert not any(map(answers_in_digests, known))


async def test_a_bare_date_or_sum_stands_behind_its_turn(repository: EdgeRepository) -> None:
    """What was due or paid, only the turn tells; in a context the turn is enough."""
    turn = "Bo still owes me 300 euros for the amp since June 3, 2023."
    memory, scope = await told(repository, turn)
    found = await memory.recall(scope, "amount of money that Bo owes, and the date", NOW)
    answers = [hit.memory.content for hit in found]
    assert "amount of money: EUR 300.00" in answers
    assert answers.index(turn) < answers.index("amount of money: EUR 300.00")
    assert "amount of money" not in block_of(found, tokens=600)


async def test_whoever_is_asked_for_by_his_name_is_the_user(repository: EdgeRepository) -> None:
    """Also where only a pattern found the name, and said whose it is."""
    memory, scope = await told(
        repository, "Hello, order 88-1204. My name is Gareth Pugh.", "I live in Swansea now."
    )
    found = await memory.recall(scope, "Where does Gareth live?", NOW)
    answers = [hit.memory.content for hit in found]
    assert set(answers[:2]) == {"I live in Swansea now.", "The user lives in Swansea."}
    assert "name: Gareth Pugh" not in answers[:2]
