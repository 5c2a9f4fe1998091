"""One value at a time, whatever is told, disputed, confirmed and forgotten of it.

The model knows which turns tell what of which day, and nothing of memories: what holds is what was
told last, of the turns that nobody took back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from random import Random
from uuid import uuid4

import pytest

from engram.consolidation.forgetting import Forgetter
from engram.domain.memories import MemoryStatus, MemoryType, SemanticMemory
from engram.operations import lifecycle as ops
from engram.operations.memories import ActOn
from engram.recall.request import Visibility
from engram.storage.updates import every_page
from tests.support.clock import NOW
from tests.support.handled_store import ADA, HandledStore, ago
from tests.support.in_process_memory import InProcessMemory
from tests.support.sizes import examples

CITIES = ("Paris", "Lisbon", "Oslo")
FIRST, LAST, EVERY = 200, 20, 5
MOMENTS = tuple(ago(days) for days in range(FIRST + 1, 0, -EVERY))


@dataclass(frozen=True)
class Told:
    """That they live, or begin to live, somewhere."""

    day: int
    city: str
    begins: bool

    @property
    def words(self) -> str:
        """How it is said."""
        return f"I {'moved to' if self.begins else 'live in'} {self.city}."


@dataclass
class Model:
    """Which turns count.

    Attributes:
        counting: What was told, and not taken back.
        refuted: Of each value that is disputed: its turns, and whether it held until then.
    """

    counting: list[Told] = field(default_factory=list)
    refuted: list[tuple[tuple[Told, ...], bool]] = field(default_factory=list)

    def stretches(self) -> list[tuple[Told, ...]]:
        """The turns of one value after another, the earliest first."""
        ordered = sorted(self.counting, key=lambda one: -one.day)
        return [tuple(same) for _, same in groupby(ordered, key=lambda one: one.city)]

    def city_at(self, moment: datetime) -> str | None:
        """Where they lived then; who only says where they live lived there before."""
        holding = None
        for number, stretch in enumerate(self.stretches()):
            begun = number > 0 or stretch[0].begins
            if not begun or ago(stretch[0].day) <= moment:
                holding = stretch[0].city
        return holding

    def take_out(self, stretch: tuple[Told, ...]) -> bool:
        """Let a value's turns count no more; whether it held until now."""
        held = stretch == self.stretches()[-1]
        self.counting = [one for one in self.counting if one not in stretch]
        return held

    def dispute(self, stretch: tuple[Told, ...]) -> None:
        """The user says that it is not so."""
        self.refuted.append((stretch, self.take_out(stretch)))

    def parts_by(self, stretch: tuple[Told, ...]) -> bool:
        """Whether one of the others was told before and after it: then that is one memory."""
        before = {one.city for one in self.counting if one.day > stretch[0].day}
        return bool(before & {one.city for one in self.counting if one.day < stretch[0].day})

    def confirm(self, number: int) -> None:
        """The user says that it is so after all: where it held, it does so again."""
        stretch, held = self.refuted.pop(number)
        self.counting += stretch
        while held and self.stretches()[-1][0].city != stretch[0].city:
            self.dispute(self.stretches()[-1])


class Ada:
    """What is known of where she lives.

    Args:
        handled: Her memories.
        name: Of her conversations: what was forgotten of another test stays forgotten.
    """

    def __init__(self, handled: HandledStore, name: str) -> None:
        self._name = name
        self._handled = handled
        self._memory = InProcessMemory(handled.store)
        self._forgetter = Forgetter(handled.store, lambda: uuid4().hex)

    async def tell(self, one: Told) -> None:
        """In a conversation of its own, taken up at once."""
        ids = await self._memory.hear(
            ADA, [one.words], at=ago(one.day), session=f"{self._name}-{one.day}", first=one.day
        )
        await self._memory.conclude(ADA, ids, NOW)

    async def say(self, word: str, memory: SemanticMemory) -> None:
        """Confirm or dispute it."""
        await self._handled.ask(ops.ACTIONS[word].operation, ActOn(memory_id=memory.id))

    async def forget(self, memory: SemanticMemory) -> None:
        """Forget it."""
        plan = await self._forgetter.plan(ADA, memory.id)
        await self._forgetter.apply(ADA, plan)

    async def homes(self) -> list[SemanticMemory]:
        """All that is known of it."""
        pages = every_page(self._handled.store, ADA, MemoryType.SEMANTIC)
        found = [m async for page in pages for m in page if isinstance(m, SemanticMemory)]
        return [m for m in found if m.slot is not None and m.slot.predicate == "lives in"]

    async def of(self, moment: datetime) -> SemanticMemory | None:
        """What answers for that moment, which is one thing at most."""
        seen = Visibility(now=NOW, valid_at=moment)
        found = [m for m in await self.homes() if seen.counts(m)]
        assert len(found) <= 1, [m.content for m in found]
        return found[0] if found else None


def city_of(memory: SemanticMemory | None) -> str | None:
    """Which city it names."""
    return None if memory is None or memory.slot is None else memory.slot.object.title()


async def agrees(ada: Ada, model: Model) -> None:
    """What is stored says of each moment what the model says, and holds no two values."""
    homes = await ada.homes()
    active = [city_of(m) for m in homes if m.status is MemoryStatus.ACTIVE]
    now = model.stretches()[-1][0].city if model.counting else None
    assert active == ([now] if now else [])
    for moment in MOMENTS:
        assert city_of(await ada.of(moment)) == model.city_at(moment), moment


@pytest.mark.parametrize("seed", range(examples(16)))
async def test_one_value_holds_at_each_moment_whatever_is_told_and_settled(
    handled: HandledStore, seed: int
) -> None:
    """Turns come in any order; what is disputed answers of no time until it is confirmed."""
    chosen, model, ada = Random(seed), Model(), Ada(handled, str(seed))  # noqa: S311 - no secret
    days = chosen.sample(range(LAST, FIRST, EVERY), 6)
    ids: dict[tuple[Told, ...], str] = {}
    for step in range(12):
        disputed = {stretch[0].city for stretch, _ in model.refuted}
        actions = ["tell"] if days else []
        actions += ["dispute", "forget"] if model.counting and step > 2 else []
        actions += ["confirm"] if model.refuted else []
        action = chosen.choice(actions or ["end"])
        if action == "tell":
            # What was told before it was disputed is no news.
            free = [city for city in CITIES if city not in disputed]
            if not free:
                continue
            one = Told(days.pop(), chosen.choice(free), chosen.random() < 0.5)
            await ada.tell(one)
            model.counting.append(one)
        elif action == "confirm":
            number = chosen.randrange(len(model.refuted))
            if model.parts_by(model.refuted[number][0]):
                continue
            wanted = ids[model.refuted[number][0]]
            (memory,) = [m for m in await ada.homes() if m.id == wanted]
            before = {s for s, _ in model.refuted}
            gone = {m.id: city_of(m) for m in await ada.homes() if m.refuted_at is None}
            await ada.say("confirm", memory)
            model.confirm(number)
            for stretch, _ in model.refuted:
                if stretch not in before:
                    (ids[stretch],) = [
                        m.id
                        for m in await ada.homes()
                        if m.refuted_at and m.id in gone and city_of(m) == stretch[0].city
                    ]
        elif action != "end":
            stretch = chosen.choice(model.stretches())
            last = ago(stretch[-1].day) + timedelta(hours=1)
            memory_then = await ada.of(last)
            assert memory_then is not None
            if action == "dispute":
                await ada.say("dispute", memory_then)
                model.dispute(stretch)
                ids[stretch] = memory_then.id
            else:
                await ada.forget(memory_then)
                model.take_out(stretch)
        await agrees(ada, model)
