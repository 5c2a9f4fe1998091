"""The language rules: they answer offline what models are asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import chain, combinations, product
from typing import Any, Final

import structlog
from pydantic import ValidationError

from engram.agents.asking import Rules
from engram.agents.proposals import (
    AS_IT_STANDS,
    PROMISE_IMPORTANCE,
    agreed,
    from_declared,
    from_end,
    from_kept,
    from_note,
    from_others,
    from_person,
    from_statement,
    names_in,
    proposed,
    quotations,
    told_by,
)
from engram.agents.requests import (
    MAX_DECISIONS,
    MAX_PROPOSED_LINKS,
    MAX_STATEMENTS,
    Decision,
    ExtractionAnswer,
    ExtractionRequest,
    LinkingAnswer,
    LinkingRequest,
    LinkProposal,
    MemoryView,
    PromiseView,
    StatedKnowledge,
    TurnView,
    as_prompt,
    read_prompt,
)
from engram.aside import CallFailed, CallTookTooLong, ProcessAside
from engram.consolidation.decisions import Relation, most_retired, word_stems
from engram.consolidation.implied import GAVE_IN, OWES
from engram.consolidation.reading import READ_HERE, RULES_FAILED, RULES_TOO_COSTLY, within_bounds
from engram.contracts.consolidation import ModelUse
from engram.contracts.messages import ModelSpent, meter_that_is_up
from engram.domain.identity import normalise
from engram.domain.memories import Category, LinkKind, MemoryKind
from engram.domain.slots import IS_CALLED, PROMISED, USER, WORKS_AT
from engram.errors import ModelRejected
from engram.giving_way import computed, handing_over
from engram.language.own_words import own_words
from engram.language.statements.addresses import addresses
from engram.language.statements.answers import confirmed, in_full
from engram.language.statements.changes import changed
from engram.language.statements.corrections import (
    by_what_was_told,
    claims,
    corrected,
    left_behind,
)
from engram.language.statements.declared import SPEAKER, Declared, declared
from engram.language.statements.doubts import Doubts
from engram.language.statements.in_full import in_full_words
from engram.language.statements.notes import (
    Note,
    Person,
    denied_of_others,
    health_of_others,
    notes,
    people,
)
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.promises import (
    Ended,
    PromisesByThing,
    ends,
    gave_in,
    is_again,
    is_promised_back,
    kept,
    names_what,
)
from engram.language.statements.reading import everything
from engram.language.statements.renewals import (
    came_about,
    given_up_for,
    instead_now,
    overtaken,
    works_now,
)
from engram.language.statements.taken_back import denied, said_anew
from engram.language.text import QUOTED, SIGNS_APART
from engram.language.vocabulary import expression

_LEAVING: Final = re.compile(r"\b(?:left|leaving|no longer|quit)\b", re.I)
_ANY_MORE: Final = re.compile(r"(?: any ?more| any longer| now)?\s*\Z")
_USES: Final = "uses"
# What a turn takes back was said this shortly before.
_HEARD_BEFORE: Final = 4
_OF_WORK: Final = frozenset({"workplace is", "employer is", "company is", "firm is", "job is"})
_log = structlog.get_logger("engram.agents")

# --- the extraction request, answered by rule


def extract(request: ExtractionRequest) -> ExtractionAnswer:
    """What the turns state in words that the rules know."""
    found: list[StatedKnowledge] = []
    heard: list[_HeardTurn] = []
    for one in request.before:
        heard.append(_out_of_play(_HeardTurn(one), heard))
    by_thing = PromisesByThing([one.object for one in request.promised])
    for said in handing_over(request.turns):
        turn = _out_of_play(_HeardTurn(said), heard)
        # What a program says of itself is no memory, whatever it is called.
        if turn.said.role == "user":
            own = turn.own
            ended = _ended_promises(own, found)
            over = {one.object for one in (*found, *ended) if one.ended}
            named = [request.promised[number] for number in by_thing.named_in(own.content)]
            found += [*ended, *_ended_before(own, named, over)]
            found += [] if ended else _giving_in(own)
            told = _in_full(turn, heard, list(_told(turn, heard[-_HEARD_BEFORE:])))
            found += _as_first_promised(own, told, [*found, *ended], request.promised)
            if heard and heard[-1].said.role == "assistant":
                found += _confirmed(heard[-1].said, turn)
        heard.append(turn)
    found = [one for one in found if _is_whole(one)]
    fitting = [fit for one in found if (fit := _fitting(one)) is not None]
    kept_ones = fitting[:MAX_STATEMENTS]
    reasoning = f"{len(kept_ones)} statements in {len(request.turns)} turns, by rule."
    if dropped := len(found) - len(fitting):
        _log.info("statements left out: longer than one may be", count=dropped)
        reasoning = f"{reasoning} Left out, because too long: {dropped}."
    return ExtractionAnswer(reasoning=reasoning, statements=kept_ones)


def _is_whole(stated: StatedKnowledge) -> bool:
    """Whether it has the words of all the code, links and quotations that it is about."""
    told = f"{stated.subject} {stated.content} {stated.object}"
    return QUOTED not in told and SIGNS_APART.search(told) is None


def _fitting(stated: StatedKnowledge) -> StatedKnowledge | None:
    """The statement as it is read out of an answer; None where it is too long for one."""
    try:
        return StatedKnowledge.model_validate(stated.model_dump())
    except ValidationError:
        return None


def _in_own_words(turn: TurnView) -> TurnView:
    """The turn up to where it passes on what somebody or something else says."""
    own = own_words(turn.content)
    return turn if own == turn.content else turn.model_copy(update={"content": own})


def _out_of_play(turn: _HeardTurn, before: Sequence[_HeardTurn]) -> _HeardTurn:
    """The turn without what its speaker says in a part that they play: "Let's role-play: ..."."""
    plays, text = any(one.plays for one in before[-1:]), turn.said.content
    begins = expression("fiction", "begins").search(text)
    if not plays and begins is None:
        return turn
    over = list(expression("fiction", "ends").finditer(text))
    again = begins is not None and (not over or over[-1].end() <= begins.start())
    own = text[over[-1].end() :] if over and not again else ""
    if not plays and begins is not None and not own:
        own = text[: begins.start()]
    return _HeardTurn(turn.said, own_words=own, plays=again or (plays and not over))


@dataclass(frozen=True)
class _HeardTurn:
    """A turn, read once however many turns after it may take something of it back.

    Attributes:
        said: The turn as it was said.
        own_words: Of it, what its speaker says as themselves; None for all of it.
        plays: Whether a part is played from then on.
    """

    said: TurnView
    own_words: str | None = None
    plays: bool = False

    @cached_property
    def own(self) -> TurnView:
        """The turn up to where it passes on what others say."""
        if self.own_words is not None:
            return _in_own_words(self.said.model_copy(update={"content": self.own_words}))
        return _in_own_words(self.said)

    @cached_property
    def stated(self) -> Sequence[RuleStatement]:
        """What it states of its speaker."""
        return everything(self.own.content)

    @cached_property
    def claimed(self) -> Sequence[RuleStatement]:
        """What it says of the user, where somebody else says it."""
        return claims(self.said.content)


def _told(heard: _HeardTurn, before: Sequence[_HeardTurn]) -> Iterator[StatedKnowledge]:
    """What a turn tells, without what is doubtful."""
    doubts = Doubts(heard.own.content)
    for one in _read(heard, before):
        # A promise that is told as a whole clause has no predicate.
        noted = PROMISED if one.category is Category.COMMITMENT else ""
        predicate, quote = one.predicate or noted, next(iter(one.quotes), "")
        thing = (one.subject if predicate.endswith("'s") else one.object) or ""
        if _ends_what_was_told(one, thing, quote, before) or not (
            predicate and doubts.are_about(predicate, thing, quote, holds=one.holds)
        ):
            yield one


def _ends_what_was_told(
    one: StatedKnowledge, thing: str, quote: str, before: Sequence[_HeardTurn]
) -> bool:
    """Whether what a turn before tells is over: "I left HSBC" of who works there."""
    if one.holds:
        return False
    if one.predicate == WORKS_AT and _LEAVING.search(quote):
        return thing.casefold() in _jobs_told(before)
    return one.predicate == _USES and _used_just_there(thing, quote, before)


def _used_just_there(tool: str, quote: str, before: Sequence[_HeardTurn]) -> bool:
    """Whether a turn before has the tool where it is given up: "I use Notion for notes"."""
    limited = re.search(rf"{re.escape(tool)} (?:in|on|at|for) [\w' -]{{1,60}}", quote, re.I)
    where = _ANY_MORE.sub("", limited.group().casefold()) if limited is not None else ""
    return where != "" and any(
        where in turn.own.content.casefold()
        for turn in before
        if turn.said.role == "user"
        and any(
            one.holds and one.predicate == _USES and one.thing.name.casefold() == tool.casefold()
            for one in turn.stated
        )
    )


def _jobs_told(before: Sequence[_HeardTurn]) -> set[str]:
    """Where the user works, as turns before tell."""
    told = (one for turn in before if turn.said.role == "user" for one in turn.stated)
    return {one.thing.name.casefold() for one in told if one.holds and one.predicate == WORKS_AT}


def _read(heard: _HeardTurn, before: Sequence[_HeardTurn]) -> Iterator[StatedKnowledge]:
    turn = heard.own
    stated, others, respelt = _with_corrections(heard, before)
    left = {one.sentence.start for one in stated if one.predicate == "uses" and not one.holds}
    yield from (from_statement(turn, one, left=left) for one in stated)
    mine = {one.sentence.start for one in stated}
    known = [one for one in people(turn.content) if one.together or one.sentence.start not in mine]
    known += respelt
    for person in known:
        yield from from_person(turn, person)
    introduced = {person.sentence.start for person in known if not person.together}
    at_home = addresses(turn.content)
    yield from (from_declared(turn, one) for one in at_home)
    located = {one.sentence.start for one in at_home}
    plain = [one for one in declared(turn.content) if one.sentence.start not in located]
    told = {one.sentence.start for one in plain}
    told |= located
    plain += [one for one in changed(turn.content) if one.sentence.start not in told]
    others += [
        one
        for one in plain
        if one.sentence.start not in introduced
        and (one.sentence.start not in mine or _before_all(one, stated))
    ]
    mended = any(one.corrects for one in stated)
    noted = notes(turn.content, [one.at for one in stated])
    yield from _declared(turn, others, noted)
    plainly = {one.sentence.start for one in others} | located
    for person in chain(denied_of_others(turn.content), health_of_others(turn.content)):
        if person.sentence.start not in plainly | introduced:
            yield from from_others(turn, person)
    for note in noted:
        if note.sentence.start in plainly:
            # Told above, and with what it is about.
            continue
        in_person = {Category.RELATIONSHIP, Category.CORRECTION}
        if note.category in in_person and note.sentence.start in introduced:
            continue
        # What was taken back is no fact, and what mends it is told already.
        if mended and note.category in {Category.CORRECTION, Category.FACT}:
            continue
        yield from_note(turn, note)


def _in_full(
    heard: _HeardTurn, before: Sequence[_HeardTurn], told: list[StatedKnowledge]
) -> list[StatedKnowledge]:
    """What a turn tells, with what its sentences say that leave out what was said just before."""
    turn = heard.own
    last = before[-1].own if before else None
    same = last is not None and last.role == "user" and last.speaker == turn.speaker
    for full in in_full_words(turn.content, last.content if last and same else None):
        quotes = quotations(turn, full.sentence)
        spoken = _HeardTurn(turn.model_copy(update={"content": full.text}))
        more = [
            one.model_copy(update={"quotes": quotes}) for one in _told(spoken, ()) if one.predicate
        ]
        if more:
            # What was made of the words as they stand says less, or something else.
            told = [one for one in told if one.quotes != quotes] + more
    return told


def _with_corrections(
    heard: _HeardTurn, before: Sequence[_HeardTurn]
) -> tuple[list[RuleStatement], list[Declared], list[Person]]:
    """What the turn states of its speaker, and what it takes back of the turns before it."""
    turn = heard.own
    told: list[RuleStatement] = []
    mine: list[RuleStatement] = []
    last: Sequence[RuleStatement] = ()
    said: list[str] = []
    for one in before:
        if one.said.role == "assistant":
            told += one.claimed
        elif one.said.role == "user" and one.said.speaker == turn.speaker:
            last = one.stated
            said.append(one.said.content)
            told += last
            mine += last
    stated = by_what_was_told(heard.stated, mine)
    words = [one.said.content for one in before if one.said.role in {"user", "assistant"}]
    mending = list(corrected(turn.content, told, words))
    if before and before[-1].said.role == "assistant":
        mending += denied(turn.content, before[-1].claimed)
        last = before[-1].claimed or last
    elif before and before[-1].said.speaker == turn.speaker:
        mending += said_anew(turn.content, stated, last)
    declaring = [one for one in mending if isinstance(one, Declared)]
    respelt = [one for one in mending if isinstance(one, Person)]
    own = [one for one in mending if isinstance(one, RuleStatement)]
    # "It's Maxx with two x's" is the dog's name where that was being spoken of.
    elsewhere = {one.value.casefold() for one in declaring} | {o.name.casefold() for o in respelt}
    elsewhere |= {one.thing.name.casefold() for one in own if one.predicate != IS_CALLED}
    stated = [
        one
        for one in stated
        if one.predicate != IS_CALLED or one.thing.name.casefold() not in elsewhere
    ]
    stated = _of_no_job(stated, words)
    known = {(one.predicate, one.thing.name.casefold(), one.holds) for one in stated}
    own += left_behind(turn.content, mine, last)
    own += works_now(turn.content, mine, said)
    own += came_about(turn.content, said)
    own += instead_now(turn.content, mine, last)
    own += given_up_for(turn.content, mine)
    own += overtaken(stated, mine)
    fresh = [o for o in own if (o.predicate, o.thing.name.casefold(), o.holds) not in known]
    return [*stated, *fresh], declaring, respelt


def _of_no_job(stated: Sequence[RuleStatement], before: Sequence[str]) -> list[RuleStatement]:
    """What is stated, but for work that is left by a name that was told of something else.

    "I left Barclays" ends no work of who banks there.
    """
    left = {one.thing.name for one in stated if one.predicate == WORKS_AT and not one.holds}
    if not left - {""}:
        return list(stated)
    own = (one for said in before for one in declared(said) if one.subject == SPEAKER)
    roles = {one.value for one in own if one.predicate not in _OF_WORK}
    return [one for one in stated if one.predicate != WORKS_AT or one.thing.name not in roles]


def _before_all(one: Declared, stated: Sequence[RuleStatement]) -> bool:
    """Whether what the speaker says of themselves follows it: "My wife works at X and I'm ..."."""
    end = one.sentence.start + one.sentence.text.find(one.value) + len(one.value)
    own = [each.at for each in stated if each.sentence.start == one.sentence.start]
    return one.subject != SPEAKER and all(at >= end for at in own)


def _declared(
    turn: TurnView, others: Sequence[Declared], noted: Sequence[Note]
) -> Iterator[StatedKnowledge]:
    """Plain statements; what a note tells as well keeps its category."""
    kinds = {note.sentence.start: note for note in noted}
    for one in others:
        made, note = from_declared(turn, one), kinds.get(one.sentence.start)
        if note is not None:
            weighed = {"category": note.category, "importance": note.importance}
            made = made.model_copy(update=weighed)
        yield made


def _confirmed(asked: TurnView, heard: _HeardTurn) -> Iterator[StatedKnowledge]:
    """What the turn before says of the speaker, who says yes to it, or asks and they answer."""
    answer = heard.own
    claim = confirmed(asked.content, answer.content)
    if claim is not None:
        for stated in everything(claim):
            yield agreed(asked, answer, from_statement(answer, stated))
        return
    full = None if heard.stated else in_full(asked.content, answer.content)
    if full is not None:
        told = _HeardTurn(answer.model_copy(update={"content": full}))
        yield from (agreed(asked, answer, one) for one in _told(told, ()))


def _ended_promises(turn: TurnView, before: Sequence[StatedKnowledge]) -> list[StatedKnowledge]:
    """What a turn ends of the promises that its speaker made in the turns before it."""
    whose = turn.speaker or "user"
    over = {one.object for one in before if one.ended}
    made = [
        one
        for one in before
        if one.predicate == PROMISED and one.holds and one.subject == whose
        if one.object not in over
    ]
    found: dict[int, Ended] = {}
    if not made:
        return _kept(turn)
    said_as = [" ".join(one.quotes) for one in made]
    for end in ends(turn.content, [one.object or "" for one in made], said_as):
        found.setdefault(end.promise, end)
    if found:
        return [from_end(turn, made[number], end) for number, end in found.items()]
    return _kept(turn)


def _ended_before(
    turn: TurnView, promised: Sequence[PromiseView], over: Container[str | None]
) -> list[StatedKnowledge]:
    """What a turn ends of the promises of other conversations, where it names what was promised."""
    whose = normalise(turn.speaker or "user")
    made = [one for one in promised if one.subject == whose and one.said_at < turn.said_at]
    made = [one for one in made if one.object not in over]
    found: dict[int, Ended] = {}
    for end in ends(turn.content, [one.object for one in made]) if made else ():
        if names_what(end.sentence.text, made[end.promise].object):
            found.setdefault(end.promise, end)
    return [from_end(turn, _as_promised(turn, made[n].object), end) for n, end in found.items()]


def _giving_in(turn: TurnView) -> Iterator[StatedKnowledge]:
    """That somebody could not do without; without what, what is known says."""
    where = gave_in(turn.content)
    if where is not None:
        yield proposed(
            sources=[turn.alias],
            content=f"{told_by(turn)} gave in.",
            quotes=quotations(turn, where),
            category=Category.MOMENT,
            subject=turn.speaker or "user",
            predicate=GAVE_IN,
            object=None,
            holds=True,
            ended=None,
            confidence=AS_IT_STANDS,
            importance=PROMISE_IMPORTANCE,
        )


def _as_first_promised(
    turn: TurnView,
    told: Iterable[StatedKnowledge],
    before: Sequence[StatedKnowledge],
    promised: Sequence[PromiseView],
) -> Iterator[StatedKnowledge]:
    """What a turn tells; what it promises again in the words in which it was first promised.

    What is owed is told by a promise to give it back, made in the same sentence or before.
    """
    whose = turn.speaker or "user"
    over = {one.object for one in before if one.ended}
    named = normalise(whose)
    made = [one.object for one in promised if one.subject == named]
    made += [o.object or "" for o in before if o.predicate == PROMISED and o.subject == whose]
    still = [what for what in made if what not in over]
    found = list(told)
    pledges = {quote for one in found if one.predicate == PROMISED for quote in one.quotes}
    closing = {quote for one in before if one.ended for quote in one.quotes}
    for one in found:
        if one.predicate == OWES and one.holds and not pledges.isdisjoint(one.quotes):
            continue
        noted = one.category is Category.COMMITMENT and one.predicate is None
        if noted and not closing.isdisjoint(one.quotes):
            # "Volunteered at the fair": told as what was kept.
            continue
        if one.predicate == OWES and is_promised_back(one.object or "", still):
            continue
        again = one.predicate == PROMISED and one.holds and one.object not in still
        first = next((w for w in still if again and is_again(one.object or "", w)), None)
        if first is None:
            yield one
        else:
            content = f"{told_by(turn)} promised to {first}."
            yield one.model_copy(update={"object": first, "content": content})


def _as_promised(turn: TurnView, what: str) -> StatedKnowledge:
    return proposed(
        sources=[turn.alias],
        content=what,
        category=Category.COMMITMENT,
        subject=turn.speaker or "user",
        predicate=PROMISED,
        object=what,
        entities=names_in(what),
        confidence=AS_IT_STANDS,
        importance=PROMISE_IMPORTANCE,
    )


def _kept(turn: TurnView) -> list[StatedKnowledge]:
    """What was done "as promised", whichever turn promised it."""
    return [from_kept(turn, what, where) for what, where in kept(turn.content)]


# --- links by rule: memories that name the same person, place or thing; and that say the same

_ENTITY_CONFIDENCE = 0.9
_SAME_CONFIDENCE = 0.9
# What everything names (one's employer, one's city) links nothing in particular.
_MOST_NAMING_IT = 12


def link(request: LinkingRequest) -> LinkingAnswer:
    """Pairs of memories that name the same, or of which one names what the other is about.

    Paraphrases too. Prunes nothing.
    """
    naming: dict[str, list[MemoryView]] = defaultdict(list)
    about: dict[str, list[MemoryView]] = defaultdict(list)
    for memory in request.memories:
        for name in _named_things(memory):
            naming[name].append(memory)
        if memory.slot is not None:
            about[memory.slot.subject].append(memory)
    found: dict[frozenset[str], LinkProposal] = {}
    for name, memories in naming.items():
        if len(memories) > _MOST_NAMING_IT:
            continue
        told = about.get(name, [])
        # Not all that is about one with each other: its profile has that together.
        leading = product(memories, told) if len(memories) + len(told) <= _MOST_NAMING_IT else ()
        alike = ((one, other, f"both name {name}") for one, other in combinations(memories, 2))
        led = ((one, other, f"names {name}, which the other is about") for one, other in leading)
        for first, second, why in chain(alike, led):
            if not (first.fresh or second.fresh) or _tell_the_same(first, second):
                continue
            found.setdefault(
                frozenset((first.alias, second.alias)),
                LinkProposal(
                    source=first.alias,
                    target=second.alias,
                    kind=LinkKind.ENTITY,
                    confidence=_ENTITY_CONFIDENCE,
                    why=why[:300],
                ),
            )
    links = list(found.values())[:MAX_PROPOSED_LINKS]
    same = _paraphrases(request.memories)
    return LinkingAnswer(
        reasoning=f"{len(links)} pairs name the same person, place or thing; "
        f"{len(same)} say the same in other forms of the words.",
        links=links,
        decisions=same,
        confidence=_ENTITY_CONFIDENCE if links else 1.0,
    )


def _paraphrases(memories: Sequence[MemoryView]) -> list[Decision]:
    """Notes that say the same in other forms of the same words, the older one first.

    No more than one answer may retire: with more, none would be believed.
    """
    first: dict[tuple[str, ...], MemoryView] = {}
    found: list[Decision] = []
    for memory in sorted(memories, key=lambda one: (one.known_at, one.alias)):
        if memory.kind is not MemoryKind.NOTE:
            continue
        older = first.setdefault(word_stems(memory.content), memory)
        if older is memory or _tell_the_same(older, memory):
            continue
        found.append(
            Decision(
                newer=memory.alias,
                older=older.alias,
                relation=Relation.SAME,
                confidence=_SAME_CONFIDENCE,
                why="the same words in other forms",
            )
        )
    return found[: min(most_retired(len(memories)), MAX_DECISIONS)]


def _named_things(memory: MemoryView) -> list[str]:
    """What it names beside what it is about, normalised, each once, in order; never the user."""
    names = dict.fromkeys(normalise(entity) for entity in memory.entities)
    if memory.slot is not None:
        names[memory.slot.object] = None
        names.pop(memory.slot.subject, None)
    return [name for name in names if len(name) > 1 and name != USER]


def _tell_the_same(first: MemoryView, second: MemoryView) -> bool:
    return first.content == second.content


# --- the rules where a model is asked else

# Up to here a thread does: a batch of ordinary turns is no reason to start a process.
_READ_IN_A_THREAD: Final = 4 * READ_HERE


class AnsweringRules:
    """Implements :class:`engram.agents.asking.Answering`: the rules are asked themselves.

    Their answers are in the asked form, and would be the same if they were sent back.

    Args:
        aside: The process that reads what is too long to be read here.
    """

    def __init__(self, aside: ProcessAside | None = None) -> None:
        self._aside = aside

    async def answer(
        self,
        request: ExtractionRequest | LinkingRequest,
        _shown: object,
        *,
        version: str,
        instructions: str | None = None,
    ) -> tuple[Any, ModelUse]:
        """See :meth:`engram.agents.asking.Answering.answer`.

        Raises:
            ModelRejected: the rules gave up on it, and would again; less of it may do.
        """
        meter, spent = meter_that_is_up(), ModelSpent(model=Rules.model_id, requests=1)
        try:
            answer = await answered(request, self._aside)
        except BaseException:
            spent = spent.model_copy(update={"failed_requests": 1})
            raise
        finally:
            if meter is not None:
                meter.add(spent)
        use = ModelUse(model=Rules.model_id, instructions_version=version, requests=1, cost_usd=0.0)
        return answer, use


async def answered(
    request: ExtractionRequest | LinkingRequest, aside: ProcessAside | None = None
) -> ExtractionAnswer | LinkingAnswer:
    """What the rules answer, wherever it is worked out.

    Args:
        request: Is asked.
        aside: The process that reads what is too long to be read here.

    Raises:
        ModelRejected: the rules gave up on it, and would again; less of it may do.
    """
    if not load.cache_info().currsize:
        # Compiling takes seconds, once in the life of a process.
        await computed(load)
    prompt = as_prompt(request) if aside is not None else ""
    try:
        # Twenty short turns take fifty milliseconds: not while others wait.
        if aside is None or len(prompt) <= _READ_IN_A_THREAD:
            return await computed(_answer, request)
        found: ExtractionAnswer | LinkingAnswer = await within_bounds(aside, _answer_to, prompt)
    except CallTookTooLong:
        raise _given_up(RULES_TOO_COSTLY) from None
    except CallFailed as error:
        raise _given_up(RULES_FAILED, kind=error.kind) from None
    except Exception as error:  # noqa: BLE001 - rules answer alike to the same request, always
        raise _given_up(RULES_FAILED, kind=type(error).__name__) from None
    return found


def _given_up(why: str, *, kind: str | None = None) -> ModelRejected:
    _log.warning("the language rules gave up on a request", why=why, kind=kind)
    return ModelRejected(
        "The language rules gave up on these turns.",
        hint="They are read again one by one; the worker's log says why.",
        details={"refused": "request", "why": why},
    )


@cache
def load() -> None:
    """Compile what the rules consist of, by reading a little of each kind."""
    said = datetime(2000, 1, 1, tzinfo=UTC)
    text = "I live in Oslo, and I like tea. My sister Ann works there. I'm sorry, I meant Rome."
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=said, content=text)
    extract(ExtractionRequest(turns=(turn,)))


def _answer_to(prompt: str) -> ExtractionAnswer | LinkingAnswer:
    """The answer to what :func:`engram.agents.requests.as_prompt` wrote, in another process."""
    return _answer(read_prompt(prompt))


def _answer(request: ExtractionRequest | LinkingRequest) -> ExtractionAnswer | LinkingAnswer:
    match request:
        case ExtractionRequest():
            return extract(request)
        case LinkingRequest():
            return link(request)
