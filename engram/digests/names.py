"""Names of people, places and projects in a text, and the word lists about them."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final

from engram.domain.digests import EntityKind
from engram.domain.identity import normalise
from engram.domain.kept import kept

# --- word lists about names: titles, roles, class nouns. Data, so that rules stay rules

_PERSON, _PLACE = EntityKind.PERSON, EntityKind.PLACE
_PROJECT, _ORGANISATION = EntityKind.PROJECT, EntityKind.ORGANISATION
_PRODUCT = EntityKind.PRODUCT

MALE: Final = frozenset("mr mister sir lord father".split())
FEMALE: Final = frozenset("mrs ms miss madam dame lady".split())
# After one of these, a single name is a family name.
FORMAL_TITLES: Final = (
    MALE
    | FEMALE
    | frozenset(
        (
            "dr doctor prof professor rev nurse captain coach inspector detective sergeant officer "
            "colonel major lieutenant judge senator pastor sheriff superintendent constable"
        ).split()
    )
)
# With one of these, a single name is a given name, and the word sets its bearer apart.
FAMILY_TITLES: Final = frozenset(
    (
        "aunt auntie uncle cousin brother sister grandma granny nana grandpa grandad granddad "
        "mama papa old young little big baby father"
    ).split()
)
SENIORITY: Final = {
    **dict.fromkeys("senior sr sr. snr".split(), "senior"),
    **dict.fromkeys("junior jr jr. jnr".split(), "junior"),
    "ii": "ii",
    "iii": "iii",
    "iv": "iv",
}

# Said after a name they tell two of one name apart, unless they go on to say what somebody does.
_SAID_AFTER: Final = frozenset("senior junior sr jr snr jnr".split())
_POSITIONS: Final = frozenset(
    "engineer developer analyst manager partner doctor consultant designer year high school".split()
)

# What somebody is to the user, or does: two wordings of one role under one word.
PERSON_ROLES: Final[dict[str, str]] = {
    **{role: role for role in (
        "brother sister son daughter niece nephew uncle aunt cousin grandmother grandfather "
        "twin stepmother stepfather stepsister stepbrother godmother godfather fiance fiancee "
        "girlfriend boyfriend ex friend neighbour colleague boss mentor client customer landlord "
        "landlady tenant flatmate plumber electrician barber hairdresser dentist doctor vet coach "
        "teacher tutor professor nanny babysitter midwife nurse therapist lawyer solicitor "
        "accountant builder cleaner gardener driver mechanic instructor trainer supervisor "
        "assistant intern supplier classmate student physio surgeon optician caretaker "
        "architect designer engineer developer recruiter agent baker butcher chef pilot priest"
    ).split()},
    **dict.fromkeys("wife husband spouse partner".split(), "spouse"),
    **dict.fromkeys("mum mom mother mummy mommy".split(), "mother"),
    **dict.fromkeys("dad father daddy".split(), "father"),
    **dict.fromkeys("gran granny grandma nana".split(), "grandmother"),
    **dict.fromkeys("grandpa grandad granddad".split(), "grandfather"),
    **dict.fromkeys("manager lead".split(), "boss"),
    **dict.fromkeys("gp physician".split(), "doctor"),
    **dict.fromkeys("neighbor".split(), "neighbour"),
    **dict.fromkeys("roommate housemate".split(), "flatmate"),
    **dict.fromkeys("coworker co-worker teammate workmate".split(), "colleague"),
    **dict.fromkeys("auntie".split(), "aunt"),
    **dict.fromkeys("mate pal buddy bestie".split(), "friend"),
    **{
        f"{who}-in-law": f"{who}-in-law"
        for who in "mother father sister brother son daughter".split()
    },
}  # fmt: skip
KIND_OF_NOUN: Final[dict[str, EntityKind]] = {
    **dict.fromkeys(PERSON_ROLES, _PERSON),
    **dict.fromkeys(
        "city town village river lake island mountain street road airport station country state "
        "region valley beach park county borough suburb desert".split(),
        _PLACE,
    ),
    **dict.fromkeys("project initiative programme".split(), _PROJECT),
    **dict.fromkeys(
        "company firm employer startup start-up bank school university college club charity "
        "cooperative agency supermarket shop store museum hospital clinic airline".split(),
        _ORGANISATION,
    ),
    **dict.fromkeys(
        "app phone laptop tool framework language database software editor browser console".split(),
        _PRODUCT,
    ),
}
# A class noun after a name that makes it another name: the Amazon is not the Amazon river.
NAMING_NOUNS: Final = frozenset(
    "river city lake island street road airport station mountain valley beach park county "
    "airline hospital museum university college bank app".split()
)
KIND_OF_OBJECT: Final[dict[str, EntityKind]] = {
    "lives in": _PLACE,
    "is from": _PLACE,
    "was born in": _PLACE,
    "works at": _ORGANISATION,
    "studies at": _ORGANISATION,
    "is married to": _PERSON,
    "knows": _PERSON,
    "uses": _PRODUCT,
    "works on": _PROJECT,
}
"""What the object of a predicate is, where the predicate tells."""

# Words that begin sentences with a capital and are no part of a name.
STARTERS: Final = frozenset(
    (
        "a about actually after again all also although always an and another any are as ask "
        "at because before big both brief but by call called can could day dear did different "
        "do does each either email every everyone everybody few finally first flying for "
        "found from get give given going good got great had happy has have having he heard "
        "hello help her here hey hi his hope how however i i'd i'll i'm i've if in into is it "
        "it's its just keep last later let let's like looking love mail make many maybe me "
        "meet meeting message met more morning most my need never new next no nobody not "
        "nothing now of off ok okay old on once one only or other our over people phone "
        "please quite reach really remember ring said same saw say says see seems send she "
        "should since so some somebody someone sometimes soon sorry speak still such talked "
        "tell text than thank thanks that that's the their them then there there's these they "
        "this those though time to today tomorrow tonight took try two until up use used very "
        "visit visiting wait was watched we well went were what what's when where which while "
        "who whom whose why will wish with work working would write wrote yes yesterday yet "
        "you your monday tuesday wednesday thursday friday saturday sunday january february "
        "march april may june july august september october november december english french "
        "german spanish italian user assistant i’m it’s that’s he’s she’s he's she's "
        "absolutely ah alright anyway awesome certainly congratulations cool correct definitely "
        "exactly fine hmm nope oh oops perfect regards right sure uh um unfortunately wow yeah yep "
        "yup "
    ).split()
) - frozenset({"big", "old"})
CONNECTORS: Final = frozenset("de da di del der den van von la le of bin ibn al y dos du".split())

# Given names that are little else. Those that are also places, months or common nouns are
# left out: there, the surroundings have to tell.
GIVEN_NAMES: Final = frozenset(
    (
        "aaron abdul abena adam adele adrian agnes ahmed aisha akira alan albert alejandro alex "
        "alexander alexandra alfred ali alice alicia alison amanda amara amelia amy ana anders "
        "andre andrea andrew angela anika anita anja ann anna anne annie anthony antonio arjun "
        "arthur asha astrid barbara beatrice becky ben benjamin bernard beth betty bill bob boris "
        "brenda brian bruno camille carl carla carlos carmen carol caroline catherine cathy "
        "cecilia celine chen chiara chloe chris christian christina christine christopher claire "
        "clara claudia colin connor craig cristina daisuke dan daniel daniela darren dave david "
        "deborah denise dennis derek diana diego dieter dimitri dmitri dominic donna doris dorothy "
        "douglas edith eduardo edward eileen elena eleanor elisa elisabeth elizabeth ella ellen "
        "elsa emil emily emma eric erik erin esther ethan eva evelyn fatima felix fernando finn "
        "fiona florian francesca francis francisco frank fred freya gabriel gareth gary gavin "
        "geoff george gerald giulia giuseppe gordon greg gregory greta gustav hannah hans harry "
        "hassan hector heidi helen helena helga henrik henry hiroshi hugo ibrahim ines ingrid "
        "irene isaac isabel isabella ivan jack jacob jake james jamie jan jane janet jason javier "
        "jean jeff jennifer jenny jeremy jerry jessica jill jim joan joanna joao joe joel johan "
        "johanna john johnny jon jonas jonathan jorge jose joseph joshua juan judith julia julian "
        "julie juliette kai karen karim karin karl kate katharina katherine kathleen katie keiko "
        "keith kelly ken kenji kenneth kevin kim klaus kofi kwame lars laura lauren leah lena leo "
        "leon leonard leila liam linda lisa liz lorenzo louis louise luca lucas lucia lucy luis "
        "luisa luke lukas magda magnus malik marco marcus margaret maria marie mario marion marta "
        "martha martin martina mary mateo matteo matthew maya meera megan mehmet mei melanie "
        "melissa mia michael michelle miguel mike mikhail mina miriam mohamed mohammed monica "
        "monika nadia naomi natalia natalie natasha neil nia nicholas nick nicola nicole nigel "
        "nikita nina noah noor nora olga oliver olivia omar oscar otto pablo pamela patricia "
        "patrick paul paula paulo pedro peggy peter petra philip phoebe pia pierre priya rachel "
        "rafael rahul raj ralph ramon raquel ravi rebecca renata ricardo richard rita robert "
        "roberta robin rodrigo roger roland ronald rosa rosie ruben rupert ruth ryan sabine sally "
        "sam samantha samir samuel sandra sanjay sara sarah sasha scott sebastian sergei sergio "
        "sharon shaun sheila shirley silvia simon simone sofia solveig sonia sophia sophie stefan "
        "stella stephanie stephen steve steven stuart sunil susan svetlana sven sylvia tamara "
        "tanya tara tatiana ted teresa thea theo theodora theresa thomas tim timothy tina tobias "
        "tom tomas tony tracy ulrich ursula valentina vanessa vera veronica vicky victor vikram "
        "viktor vincent vivian vladimir walter wanda wei wendy werner will william xavier yara "
        "yasmin yuki yusuf yvonne zainab zara zoe"
    ).split()
)


# --- names in a text: where they stand, and of what parts they consist

_NAME_TOKEN = re.compile(r"[^\W_](?:[\w&’'-]*[^\W_])?")
_CONTRACTED = re.compile(r"['’](?:t|re|ve|ll|d|m)\Z", re.IGNORECASE)
_POSSESSIVE_ENDING = re.compile(r"['’]s?\Z")
_LAST_WORD = re.compile(r"(?<![\w-])([\w-]+)\s+\Z")
_WORD_BEFORE: Final = 40
_SHORT_FORM: Final = 3
_ABBREVIATED_TITLES = FORMAL_TITLES | frozenset("jr sr st mt".split())


@dataclass(frozen=True, slots=True)
class FoundName:
    """A name in a text.

    Attributes:
        name: As it is written, without a possessive ending.
        start: Where it begins.
        end: Where it ends; a possessive ending comes after.
        prefix: A word of kinship or age before it, lower case ("aunt", "old").
    """

    name: str
    start: int
    end: int
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class NameParts:
    """A name taken for a person's.

    Attributes:
        title: "dr", "mrs"; empty for none.
        given: First given name or initial.
        family: Family name.
        seniority: "senior", "junior" or a numeral.
    """

    title: str = ""
    given: str = ""
    family: str = ""
    seniority: str = ""


def names_in(text: str) -> list[FoundName]:
    """Every name, in order. Prefers missing one to inventing one."""
    found: list[FoundName] = []
    run: list[re.Match[str]] = []
    for token in _NAME_TOKEN.finditer(text):
        if run and not _continues(text, run[-1], token):
            found += _named(text, run)
            run = []
        if (
            _is_capital(token.group())
            or (run and token.group() in CONNECTORS)
            or (run and _is_seniority(text, token))
        ):
            run.append(token)
    return found + _named(text, run)


def _is_seniority(text: str, token: re.Match[str]) -> bool:
    if token.group().casefold() not in _SAID_AFTER:
        return False
    after = _NAME_TOKEN.search(text, token.end(), token.end() + _WORD_BEFORE)
    return after is None or after.group().casefold() not in _POSITIONS | PERSON_ROLES.keys()


# Who is who is asked of each name many times over.
@kept(8192)
def name_key(name: str) -> str:
    """The form under which two spellings are one name: in lower case, without accents."""
    words = " ".join(word.rstrip(".") for word in normalise(name).split())
    if words.isascii():
        return words
    apart = unicodedata.normalize("NFD", words)
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


def without_title(name: str) -> str:
    """The form of a name without what somebody is addressed by: "Dr Elena Diaz" is Elena Diaz."""
    words = name_key(name).split()
    while len(words) > 2 and words[0] in FORMAL_TITLES:  # noqa: PLR2004 - "Dr Diaz" needs its title
        words = words[1:]
    return " ".join(words)


@kept(8192)
def parts_of(name: str) -> NameParts:
    """The parts of a person's name."""
    words = name_key(name).split()
    title = ""
    while words and words[0] in FORMAL_TITLES:
        title, words = words[0], words[1:]
    seniority = SENIORITY.get(words[-1], "") if len(words) > 1 else ""
    if seniority:
        words = words[:-1]
    if not words:
        return NameParts(title=title)
    if len(words) == 1:
        only = words[0]
        return NameParts(title, "" if title else only, only if title else "", seniority)
    return NameParts(title, words[0], words[-1], seniority)


def agree(first: NameParts, second: NameParts) -> bool:
    """Whether one person can bear both names: nothing in them contradicts."""
    return (
        not ({first.title, second.title} & MALE and {first.title, second.title} & FEMALE)
        and _given_agree(first.given, second.given)
        and (not first.family or not second.family or first.family == second.family)
        and (first.seniority == second.seniority)
    )


def _given_agree(first: str, second: str) -> bool:
    if not first or not second or first == second:
        return True
    short, long = sorted((first, second), key=len)
    # An initial, or a short form: "Sam" and "Theo", and not "Jo" for "Joanna" and "John" alike.
    shortened = len(short) == 1 or (len(short) >= _SHORT_FORM and len(long) - len(short) > 1)
    return shortened and long.startswith(short)


def _is_capital(word: str) -> bool:
    return word[0].isupper()


def _continues(text: str, before: re.Match[str], token: re.Match[str]) -> bool:
    between = text[before.end() : token.start()]
    if _POSSESSIVE_ENDING.search(before.group()):
        # St. Mary's Hospital is one name; "Anna's hospital" is not.
        kind = KIND_OF_NOUN.get(token.group().casefold())
        return between == " " and _is_capital(token.group()) and kind in {_PLACE, _ORGANISATION}
    if between == " ":
        return True
    abbreviated = before.group().casefold() in _ABBREVIATED_TITLES or len(before.group()) == 1
    return between in (". ", ".") and abbreviated


def _named(text: str, run: list[re.Match[str]]) -> list[FoundName]:
    tokens = list(dropwhile(_begins_a_sentence, run))
    while tokens and tokens[-1].group() in CONNECTORS:
        tokens.pop()
    if not tokens or (len(tokens) == 1 and _is_no_name(tokens[0].group())):
        return []
    prefix = _word_before(text, tokens[0].start())
    prefix = prefix if prefix in FAMILY_TITLES else ""
    if len(tokens) > 1 and tokens[0].group().casefold() in FAMILY_TITLES - {"big", "little"}:
        prefix = tokens.pop(0).group().casefold()
    last = tokens[-1]
    end = last.end() - len(_ending(last.group()))
    return [FoundName(text[tokens[0].start() : end], tokens[0].start(), end, prefix)]


def _begins_a_sentence(token: re.Match[str]) -> bool:
    word = token.group()
    return word.casefold() in STARTERS or _CONTRACTED.search(word) is not None


def _is_no_name(word: str) -> bool:
    """Whether it is none alone: a title, or a letter, which can be an initial of one."""
    return len(word) == 1 or word.casefold() in FORMAL_TITLES


def _ending(word: str) -> str:
    ending = _POSSESSIVE_ENDING.search(word)
    return ending.group() if ending else ""


def _word_before(text: str, start: int) -> str:
    """The last word before ``start``, unless it is longer than any that tells something."""
    word = _LAST_WORD.search(text, max(0, start - _WORD_BEFORE), start)
    return word.group(1).casefold() if word else ""
