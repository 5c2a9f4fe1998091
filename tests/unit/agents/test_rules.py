"""How the rules read turns, word by word."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from threading import Thread

import pytest

from engram.agents.requests import ExtractionRequest, LinkingRequest, MemoryView, TurnView
from engram.agents.rules import extract, link, load
from engram.domain.memories import Category, Slot
from engram.language.periods import starts_told
from engram.language.statements.clauses import clauses, sentences
from engram.language.statements.patterns import candidates, is_inside, patterns, readings
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.reading import everything, statements
from tests.support.statement_labels import labelled

SAID = datetime(2025, 6, 20, 18, tzinfo=UTC)


LEEDS_TO_HULL = ["The user lives in Hull.", "The user no longer lives in Leeds."]


def contents(text: str, *, role: str = "user", speaker: str | None = None) -> list[str]:
    """The sentences that a turn becomes."""
    turn = TurnView(alias="e1", role=role, speaker=speaker, said_at=SAID, content=text)
    return [s.content for s in extract(ExtractionRequest(turns=(turn,))).statements]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Lisbon.", ["The user lives in Lisbon."]),
        ("I'm a nurse at Charité.", ["The user works as a nurse.", "The user works at Charité."]),
        ("I own a narrowboat.", ["The user owns a narrowboat."]),
        ("I no longer live in Oslo.", ["The user no longer lives in Oslo."]),
        ("I'm no longer married to Tom.", ["The user is no longer married to Tom."]),
        ("I promised Mila to build a treehouse.", ["The user promised Mila to build a treehouse."]),
        ("I plan to sell my car.", ["The user plans to sell their car."]),
        ("I have a cat called Miso.", ["The user has a cat called Miso."]),
        (
            "I was born in Lagos in 1990.",
            ["The user was born in Lagos.", "The user was born in 1990."],
        ),
        ("I prefer oat milk to soy milk.", ["The user prefers oat milk to soy milk."]),
        ("I live in the Netherlands.", ["The user lives in the Netherlands."]),
        ("I like to cook.", ["The user likes to cook."]),
    ],
)
def test_statements_become_sentences_in_the_third_person(text: str, expected: list[str]) -> None:
    """Each is self-contained, and keeps the words that were said."""
    assert contents(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I work at Siemens, sorry, I meant Bosch.", ["The user works at Bosch."]),
        ("I've got two dogs. Actually it's three dogs.", ["The user has three dogs."]),
        (
            "I study animation now, not graphic design.",
            ["The user studies animation.", "The user no longer studies graphic design."],
        ),
        ("Ditched Chrome in March.", ["The user no longer uses Chrome."]),
        ("I quit my job.", ["The user has left their job."]),
        ("Callum and I got divorced.", ["The user is no longer married to Callum."]),
        (
            "I left Deloitte for a startup called Rise.",
            ["The user works at Rise.", "The user no longer works at Deloitte."],
        ),
        (
            "My favourite pub was the Crown, now my favourite pub is the Anchor.",
            [
                "The user's favourite pub is no longer the Crown.",
                "The user's favourite pub is the Anchor.",
            ],
        ),
        ("I don't live in Oslo.", ["The user does not live in Oslo."]),
        ("My passport says I was born in Lagos.", ["The user was born in Lagos."]),
        ("I'm from Peru, can you suggest a song?", ["The user is from Peru."]),
        ("Home is Porto for me.", ["The user lives in Porto."]),
    ],
)
def test_changes_and_corrections_are_understood(text: str, expected: list[str]) -> None:
    """What ended, what was meant, and what is left out."""
    assert sorted(contents(text)) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "category", "expected"),
    [
        ("I never lend money to friends.", "principle", "The user never lends money to friends."),
        (
            "We've decided against the extension.",
            "decision",
            "The user has decided against the extension.",
        ),
        (
            "Yesterday we hiked up Ben Nevis.",
            "moment",
            "The user hiked up Ben Nevis.",
        ),
        ("I can read Braille.", "skill", "The user can read Braille."),
        ("Sam Okafor is my boss.", "relationship", "Sam Okafor is the user's boss."),
        ("Our cat is called Biscuit.", "entity", "The user's cat is called Biscuit."),
        (
            "Wait, I mixed up my cousins. Noor is the one in Doha.",
            "correction",
            "The user corrected: the user mixed up their cousins. Noor is the one in Doha.",
        ),
        (
            "Keep it brief, I don't want long mails.",
            "preference",
            "Keep it brief, the user doesn't want long mails.",
        ),
        (
            "Keep it short, I can't read more and I haven't time.",
            "preference",
            "Keep it short, the user can't read more and the user hasn't time.",
        ),
        (
            "Keep your answers short, I'll ask if I've questions.",
            "preference",
            "Keep your answers short, the user will ask if the user has questions.",
        ),
        ("Decided: Denmark!", "decision", "The user decided: Denmark."),
        ("Bought a gravel bike.", "fact", "The user bought a gravel bike."),
    ],
)
def test_what_has_no_predicate_is_retold_under_its_category(
    text: str, category: str, expected: str
) -> None:
    """The clause itself becomes the memory, in the third person."""
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=text)
    (stated,) = extract(ExtractionRequest(turns=(turn,))).statements
    assert (stated.category.value, stated.content) == (category, expected)


@pytest.mark.parametrize("text", ["Bought a gravel bike.", "Went to a fair yesterday."])
def test_a_word_that_begins_a_sentence_names_nothing(text: str) -> None:
    """Its capital is the sentence's, also where its speaker left themselves out."""
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=text)
    assert [one.entities for one in extract(ExtractionRequest(turns=(turn,))).statements] == [[]]


@pytest.mark.parametrize(
    ("text", "names"),
    [("I use iCloud.", {"iCloud"}), ("I use macOS.", {"macOS"}), ("I use C++.", {"C++"})],
)
def test_a_name_begins_where_its_word_does(text: str, names: set[str]) -> None:
    """Somebody uses iCloud, and no Cloud."""
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=text)
    (stated,) = extract(ExtractionRequest(turns=(turn,))).statements
    assert {name.rstrip(".") for name in stated.entities} == names


def test_people_are_introduced_and_not_mixed_up_with_the_user() -> None:
    """What is said of a sister is stated of her."""
    turn = TurnView(
        alias="e1", role="user", speaker=None, said_at=SAID, content="My sister Ana lives in Porto."
    )
    said = extract(ExtractionRequest(turns=(turn,))).statements
    assert [(s.subject, s.predicate, s.object) for s in said] == [
        ("Ana", "is the user's", "sister"),
        ("Ana", "lives in", "Porto"),
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes, exactly.", ["The user lives in Oslo."]),
        ("yep", ["The user lives in Oslo."]),
        ("Yes, but only until June.", []),
        ("No, to Bergen.", []),
        ("Why do you ask?", []),
    ],
)
def test_a_claim_counts_once_the_user_plainly_confirms_it(answer: str, expected: list[str]) -> None:
    """Both turns are sources, and the confidence is lower."""
    turns = (
        TurnView(
            alias="e1",
            role="assistant",
            speaker=None,
            said_at=SAID,
            content="Nice! So you moved to Oslo?",
        ),
        TurnView(alias="e2", role="user", speaker=None, said_at=SAID, content=answer),
    )
    said = extract(ExtractionRequest(turns=turns)).statements
    assert [s.content for s in said] == expected
    assert all(s.sources == ["e1", "e2"] and s.confidence < 0.9 for s in said)


def test_quotations_stand_in_the_turn_letter_by_letter() -> None:
    """Also where typographic signs, code and quoted words stand around them."""
    text = "“Hm”, she said. `x` Well… I’m living in Gent — see https://x.org. I’ve decided to stay."
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=text)
    said = extract(ExtractionRequest(turns=(turn,))).statements
    assert len(said) == 2
    assert all(quote in text for s in said for quote in s.quotes)
    assert all(s.quotes for s in said)


def test_the_first_word_finds_every_wording_that_fits() -> None:
    """Looking patterns up by the word after the head loses none that matches."""
    for item in labelled("statements.seen.jsonl") + labelled("ordinary.seen.jsonl"):
        for sentence in sentences(item["text"]):
            for clause in clauses(sentence):
                found = readings(clause.text)
                chosen = {pattern.order for pattern, _ in candidates(found)}
                fitting = {
                    pattern.order
                    for pattern in patterns()
                    for reading in found
                    if reading.head == pattern.head and not is_inside(pattern)
                    if pattern.says.match(reading.clause, reading.start)
                }
                assert fitting <= chosen


def test_a_speaker_with_a_name_is_the_subject() -> None:
    """Two people in one conversation are told apart."""
    assert contents("I live in Lisbon.", speaker="Ada") == ["Ada lives in Lisbon."]
    assert contents("I live in Rome.", speaker="Bo") == ["Bo lives in Rome."]


@pytest.mark.parametrize(
    ("role", "speaker"),
    [("assistant", None), ("system", None), ("tool", None), ("assistant", "Claude")],
)
def test_machines_say_nothing_about_themselves(role: str, speaker: str | None) -> None:
    """What an assistant or a tool says in the first person is no memory."""
    assert contents("I live in Lisbon.", role=role, speaker=speaker) == []


@pytest.mark.parametrize(
    "text",
    ["No nuts for me, please.", "Please no nuts for me always.", "No dark mode, please."],
)
def test_what_nobody_wants_is_no_preference(text: str) -> None:
    """A "no" before a thing is no answer to be left out: the rest says the opposite."""
    assert contents(text) == []


def test_a_no_that_answers_is_left_out() -> None:
    """After "No," comes what is wanted."""
    assert contents("No, tea for me, please.") == ["Tea for the user, please."]


@pytest.mark.parametrize(
    "text",
    [
        "If I lived in Rome I'd eat better.",
        "My boss says I work at a circus.",
        "I wish I lived in Rome.",
        "Do I live in Lisbon?",
        "I almost moved to Rome.",
        "He said: 'I live in Rome.'",
        "Write a poem that begins: I live in Rome.",
        "`I live in Rome`",
        "I live in hope.",
        "I work from home.",
        "I have a question about my order.",
        "I'm going to the dentist.",
        "I'm going to bed.",
        "I love you.",
        "I'm a morning person.",
        "I was married to Tom.",
        "I moved to a new flat.",
        "My friend uses Vim.",
        "the flat I live in is cold",
    ],
)
def test_what_is_not_stated_is_not_remembered(text: str) -> None:
    """Questions, wishes, hearsay, quotations and idioms yield nothing."""
    assert statements(text) == []


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I moved in May.", datetime(2025, 5, 1, tzinfo=UTC)),
        ("I moved in August.", datetime(2024, 8, 1, tzinfo=UTC)),
        ("I moved in May 2022.", datetime(2022, 5, 1, tzinfo=UTC)),
        ("I have lived here since 2019.", datetime(2019, 1, 1, tzinfo=UTC)),
        ("I moved two years ago.", datetime(2023, 6, 1, tzinfo=UTC)),
        ("I moved three weeks ago.", datetime(2025, 5, 30, 18, tzinfo=UTC)),
        ("I moved last year.", datetime(2024, 1, 1, tzinfo=UTC)),
        ("Hal and I split up in March.", datetime(2025, 3, 1, tzinfo=UTC)),
        ("I quit Ocado last Friday.", datetime(2025, 6, 13, 18, tzinfo=UTC)),
        ("I moved fourteen days ago.", datetime(2025, 6, 6, 18, tzinfo=UTC)),
        ("I lived in Lille until 2015.", datetime(2015, 1, 1, tzinfo=UTC)),
        ("I promised we'd ship on Wednesday.", None),
        ("My band is called Last Tuesday.", None),
        ("I moved in 2040.", None),
        ("I may move.", None),
    ],
)
def test_when_something_began(text: str, day: datetime | None) -> None:
    """Resolved against the turn's own time, and never in the future."""
    assert next((told.at for told in starts_told(text, SAID)), None) == day


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I moved on 4 May 2025.", "2025-05-04", "2025-05-04"),
        ("I quit Ocado last Friday.", "2025-06-13", "2025-06-13"),
        ("I moved three days ago.", "2025-06-17", "2025-06-17"),
        ("I moved two weeks ago.", "2025-06-03", "2025-06-09"),
        ("I moved two months ago.", "2025-04-05", "2025-05-05"),
        ("I moved last week.", "2025-06-06", "2025-06-18"),
        ("I moved in March.", "2025-03-01", "2025-03-31"),
        ("I moved in 2015.", "2015-01-01", "2015-12-31"),
        ("I moved last summer.", "2024-06-01", "2024-08-31"),
    ],
)
def test_from_when_to_when_it_may_have_begun(text: str, first: str, last: str) -> None:
    """The days that the words leave open; who counts back is off by half of the unit."""
    told = starts_told(text, SAID)[0]
    assert str(told.within) == f"{first} to {last}"


@pytest.mark.parametrize("bound", ["before", "by", "until", "after"])
def test_what_was_before_or_after_a_time_was_not_in_it(bound: str) -> None:
    """Its moment is what there is to order it by; no day is left open by it."""
    (told,) = starts_told(f"I moved {bound} March 2020.", SAID)
    assert (told.at, told.within) == (datetime(2020, 3, 1, tzinfo=UTC), None)


def seen(
    alias: str,
    what: str,
    *,
    fresh: bool,
    entities: tuple[str, ...] = (),
    whose: str = "user",
) -> MemoryView:
    """A memory as the linking rules see it."""
    slot = Slot(subject=whose, predicate="uses", object=what)
    return MemoryView(
        alias=alias,
        content=f"{whose} uses {what}.",
        category=Category.FACT,
        slot=slot,
        entities=entities,
        event_at=SAID,
        known_at=SAID,
        fresh=fresh,
    )


def test_what_names_the_same_is_linked_if_one_of_them_is_new() -> None:
    """Old pairs were looked at before; the user alone links nothing."""
    memories = (
        seen("m1", "linear", fresh=True, entities=("Rise",)),
        seen("m2", "oven", fresh=False, entities=("Rise",)),
        seen("m3", "till", fresh=False, entities=("Rise",)),
        seen("m4", "pen", fresh=True),
    )
    answer = link(LinkingRequest(memories=memories))
    assert [(x.source, x.target) for x in answer.links] == [("m1", "m2"), ("m1", "m3")]
    assert answer.pruned == []


def test_what_one_names_leads_to_what_is_told_about_it() -> None:
    """From the object to the subject; not from all that is told about one to each other."""
    memories = (
        seen("m1", "globex", fresh=True, entities=("Marta Keller", "Globex"), whose="marta keller"),
        seen("m2", "basel", fresh=False, entities=("Globex", "Basel"), whose="globex"),
        seen("m3", "turbines", fresh=True, entities=("Globex",), whose="globex"),
        seen("m4", "chess", fresh=True, entities=("Marta Keller",), whose="marta keller"),
    )
    answer = link(LinkingRequest(memories=memories))
    assert [(x.source, x.target) for x in answer.links] == [("m1", "m2"), ("m1", "m3")]


def test_what_leads_to_each_other_is_linked_once_and_within_bounds() -> None:
    """Each names what the other is about: one link. What everything is about leads nowhere."""
    both = (seen("m1", "b", fresh=True, entities=("Bo",), whose="al"),
            seen("m2", "a", fresh=True, entities=("Al",), whose="bo"))  # fmt: skip
    assert len(link(LinkingRequest(memories=both)).links) == 1
    many = [seen(f"n{n}", f"thing {n}", fresh=True, whose="globex") for n in range(12)]
    one = seen("m1", "globex", fresh=True, whose="marta")
    assert link(LinkingRequest(memories=(one, *many))).links == []
    assert len(link(LinkingRequest(memories=(one, *many[:5]))).links) == 5


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("Marta Keller works at Globex.", "Globex"),
        ("My boss lives in Porto.", "Porto"),
        ("My boss lives in the U.S.", "U.S."),
        ("I use C++.", "C++"),
    ],
)
def test_the_full_stop_of_a_sentence_is_in_no_name(text: str, entity: str) -> None:
    """A name is the same at the end of a sentence and in its middle."""
    turn = TurnView(alias="e1", role="user", speaker=None, said_at=SAID, content=text)
    (told,) = extract(ExtractionRequest(turns=(turn,))).statements
    assert entity in told.entities


def test_links_are_proposed_in_the_order_in_which_things_are_named() -> None:
    """Not in that of a set, which differs from process to process."""
    named = ("Rise", "Ada", "Oslo", "Vim", "Kiel", "Mei", "Qdrant")
    others = [seen(f"m{n}", f"thing {n}", fresh=False, entities=(x,)) for n, x in enumerate(named)]
    answer = link(
        LinkingRequest(memories=(seen("new", "pen", fresh=True, entities=named), *others))
    )
    assert [x.target for x in answer.links] == [other.alias for other in others]


def test_the_same_turn_gives_the_same_answer() -> None:
    """The rules are deterministic."""
    text = "I live in Lisbon, I use Vim and I'm allergic to cats, dogs and pollen."
    assert contents(text) == contents(text)
    assert len(contents(text)) == 5


@pytest.mark.parametrize(
    "text",
    [
        "Her bike got stolen.",
        "My kids take Spanish lessons.",
        "Anna's my home help.",
        "Pizza it is, we moved on.",
        "I've been in Rome since the weekend.",
    ],
)
def test_what_others_have_and_do_is_not_the_user_s(text: str) -> None:
    """A wording whose object stands inside it needs its speaker as well."""
    assert statements(text) == []


def test_a_day_on_which_studies_ended_is_no_subject() -> None:
    """To graduate "in June" names no subject that was given up."""
    assert not [one for one in statements("I graduated in June.") if one.predicate == "studies"]


def test_what_is_taken_up_again_in_one_breath_has_not_ended() -> None:
    """The same thing given up and switched to is in use; another one is given up."""
    again = contents("I don't use Slack any more, I switched to Slack.")
    assert not [one for one in again if "no longer" in one or "does not" in one]
    assert "The user no longer uses Slack." in contents(
        "I don't use Slack any more, I switched to Zulip."
    )


@pytest.mark.parametrize(
    ("promised", "then", "outcomes"),
    [
        ("I'll cover Amina's shift", "Amina covered mine last month", []),
        ("I said I'd ring the insurer", "gave up on the insurer, will try on Monday", []),
        ("I told the choir I'd sing the solo", "my voice went, so Pia is singing the solo", ["no"]),
        ("I promised to swap shifts with Devon", "that shift swap went through", ["kept"]),
        ("I'll send Ana the slides", "Sent the slides, I'll present them tomorrow", ["kept"]),
        ("I promised to descale the kettle", "ok, finally got it done", ["kept"]),
    ],
)
def test_who_did_what_decides_whether_a_promise_is_over(
    promised: str, then: str, outcomes: list[str]
) -> None:
    """Done by whom it was promised to, or put off, it stays open."""
    turns = tuple(
        TurnView(alias=f"e{number}", role="user", speaker=None, said_at=SAID, content=text)
        for number, text in enumerate((promised, then), start=1)
    )
    said = [one for one in extract(ExtractionRequest(turns=turns)).statements if one.ended]
    words = {"fulfilled": "kept", "expired": "no"}
    assert [words[one.ended.value] for one in said if one.ended] == outcomes


def test_a_turn_is_read_once_for_all_that_follow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes back is looked for in the four before it, which are not read again for it."""
    read: list[str] = []

    def noted(text: str) -> list[RuleStatement]:
        read.append(text)
        return everything(text)

    monkeypatch.setattr("engram.agents.rules.everything", noted)
    texts = [f"I live in Oslo, and my lucky number is {number}." for number in range(8)]
    turns = tuple(
        TurnView(alias=f"e{n}", role="user", speaker=None, said_at=SAID, content=text)
        for n, text in enumerate(texts)
    )
    assert extract(ExtractionRequest(turns=turns)).statements
    assert sorted(read) == sorted(texts)


def test_whoever_waits_for_python_has_it_from_turn_to_turn() -> None:
    """Others go on beside a thread that reads forty turns, though nothing takes Python from it."""
    turns = tuple(
        TurnView(
            alias=f"e{n}",
            role="user",
            speaker=None,
            said_at=SAID,
            content=f"I live in Oslo, I like tea, and my lucky number is {n}.",
        )
        for n in range(40)
    )
    load()
    reading = Thread(target=extract, args=(ExtractionRequest(turns=turns),))
    before, went_on = sys.getswitchinterval(), 0
    sys.setswitchinterval(100)
    try:
        reading.start()
        while reading.is_alive():
            went_on += 1
            time.sleep(1e-5)
    finally:
        sys.setswitchinterval(before)
    assert went_on > len(turns) / 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Another does it, or something else does.
        ("The team grew, and we're 9 now.", []),
        ("We moved the archive from Leeds to Hull.", ["The archive moved to Hull."]),
        ("I moved my whole family from Leeds to Hull.", LEEDS_TO_HULL),
        ("I got an offer from a bakery in Hull.", []),
        ("I accepted an offer from Siemens.", ["The user works at Siemens."]),
        # A visit is no home, and a month is no place.
        ("I was in Prague three years ago.", []),
        ("I lived in Prague until 2019.", ["The user no longer lives in Prague."]),
        ("From April I'm from home on Fridays.", []),
        # Who stands behind a word that is no name, and whose name has a title.
        ("Even my sister laughed.", []),
        ("My tutor, Mr. Falk, is ill.", ["Mr. Falk is the user's tutor."]),
        ("My boss is Dr. Amara Osei.", ["Dr. Amara Osei is the user's boss."]),
        # Nobody means it, and once is no principle.
        ("I hate my life.", []),
        ("I never read the second chapter.", []),
        ("I never lend tools.", ["The user never lends tools."]),
        ("My course is evenings.", []),
        # What is said beside it is no part of it.
        (
            "I broke my wrist on Monday, can you believe it!",
            ["The user broke their wrist on Monday."],
        ),
        ("I'm more of a cat person to be fair, lol.", ["The user is more of a cat person."]),
        # Until when is not what is promised.
        ("I promised to send two more by tomorrow.", ["The user promised to send two more."]),
        ("I promised to drop by tomorrow.", ["The user promised to drop by."]),
    ],
)
def test_what_only_looks_like_a_statement_of_the_user(text: str, expected: list[str]) -> None:
    """Visits, months, offices, sighs and parts of names are taken for nothing else."""
    assert contents(text) == expected


@pytest.mark.parametrize(
    "pasted",
    [
        "2025-03-17 02:00:09 ERROR I like big payloads (413)",
        "WARN: I live in Oslo",
        "10:02:11 INFO I work at Siemens now",
        "$ echo I live in Oslo",
        "Traceback (most recent call last): I live in Oslo",
    ],
)
def test_lines_of_a_log_or_a_shell_state_nothing(pasted: str) -> None:
    """They are somebody else's words, or nobody's; the lines around them are the user's."""
    assert contents(pasted) == []
    around = f"Look at this:\n{pasted}\nI live in Ghent."
    assert contents(around) == ["The user lives in Ghent."]


@pytest.mark.parametrize(
    "manner",
    ["all year", "permanently", "full-time", "officially", "by choice", "on site", "all the time"],
)
def test_what_is_not_so_in_that_manner_may_be_so(manner: str) -> None:
    """Who does not live in Porto all year lives there; without the manner, nobody does."""
    denials = ("I don't live in Porto", "I don't work at Globex", "I'm not a nurse")
    for denied in denials:
        assert not set(contents(f"{denied} {manner}.")) & set(contents(f"{denied}."))
        assert contents(f"{denied}.")


def test_the_main_reason_is_no_manner() -> None:
    """Who does not use something "mainly because" of what it is does not use it."""
    assert contents("I don't use Slack mainly because it is slow.") == [
        "The user does not use Slack."
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "We decided to use `uv` instead of `pip`.",
            ["The user decided to use `uv` instead of `pip`."],
        ),
        (
            "Always run `make test` before you commit.",
            ["Always run `make test` before you commit."],
        ),
        ("I prefer `pytest` over `unittest`.", ["The user prefers `pytest` over `unittest`."]),
        (
            "Please always send a copy of each invoice to billing@acme.example.",
            ["Always send a copy of each invoice to billing@acme.example."],
        ),
        (
            "I always log in at https://portal.acme.example/login.",
            ["The user always logs in at https://portal.acme.example/login."],
        ),
        (
            "I promise to send the contract to legal@acme.example.",
            ["The user promised to send the contract to legal@acme.example."],
        ),
        ("I like to run `make` at night.", ["The user likes to run `make` at night."]),
        (
            "Sorry, I got that wrong: we deploy with `make deploy`.",
            ["The user corrected: the user got that wrong: they deploy with `make deploy`."],
        ),
    ],
)
def test_code_and_addresses_stay_in_what_is_said_of_them(text: str, expected: list[str]) -> None:
    """Without them, a conclusion says nothing: "The user decided to use instead of"."""
    assert contents(text) == expected


def test_code_and_addresses_are_neither_read_nor_retold() -> None:
    """What stands in them is no statement, and "me" and "my" there are nobody."""
    said = "Never send files to me@acme.example or https://my.acme.example without asking me."
    told = "Never send files to me@acme.example or https://my.acme.example without asking the user."
    assert contents(said) == [told]
    assert contents("Run `echo I live in Rome` and I live in Oslo.") == ["The user lives in Oslo."]
    before = "```\nI live in Rome\n``` is what it prints. I live in Oslo."
    assert contents(before) == ["The user lives in Oslo."]
    aside = "My sister Eve (eve@acme.example) lives in Rome."
    assert contents(aside) == ["Eve is the user's sister.", "Eve lives in Rome."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My repo: https://x.example/a I work at Acme.", ["The user works at Acme."]),
        ("https://x.example I live in Rome.", ["The user lives in Rome."]),
        ("`ls` I'm a nurse", ["The user works as a nurse."]),
        ("Tom said: `ls` I live in Rome.", []),
        ("If this works: `ls` I live in Rome.", []),
        ("The tool `ls` I use daily is old.", []),
        ("`uv` I use daily.", []),
    ],
)
def test_a_clause_begins_behind_code_or_a_link_that_stands_alone(
    text: str, expected: list[str]
) -> None:
    """Where words before it take it in, or hand over to somebody else, none does."""
    assert contents(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Always run ```make\ntest``` before a commit.",
        f"Always log in at https://acme.example/{'x' * 400} before noon.",
        "I use `uv` and Slack.",
        "My mum uses `uv` and so do I.",
    ],
)
def test_what_lacks_its_code_or_address_is_not_concluded(text: str) -> None:
    """Of several lines, too long, or cut off: a sentence with a gap would be wrong."""
    assert contents(text) == []


def test_a_sign_for_private_use_is_a_blank() -> None:
    """Whoever writes what stands for code and links elsewhere gets no other's words for it."""
    said = "We decided to use \U00100000 and `uv`."
    assert contents(said) == ["The user decided to use and `uv`."]
