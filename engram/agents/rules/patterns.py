"""How people say such things of themselves: one table, from wording to predicate.

In a pattern a space is any white space, ``{I}`` is "I" or "we" with the adverbs
that may follow, ``{AM}`` "I am" and ``{HAVE}`` "I have" in all their spellings.
A pattern matches at the start of a clause; what follows it is the object.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from engram.agents.rules.vocabulary import alternatives, vocabulary


@dataclass(frozen=True, slots=True)
class Pattern:
    """One wording.

    Attributes:
        predicate: What it states.
        kind: How its object is cut out and checked, see ``turns``.
        says: What precedes the object.
        holds: False where it says that something is no longer so.
        begins: Whether it says that something began.
        only_ended: Counts only with "any more" in the clause.
    """

    predicate: str
    kind: str
    says: re.Pattern[str]
    holds: bool = True
    begins: bool = False
    only_ended: bool = False


# predicate, kind of object, base form, gerund, further ways to say that it is so.
_STATES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "lives in",
        "place",
        "(?:live|reside) in",
        "(?:living|residing) in",
        (
            "{AM} (?:now )?based (?:in|out of)",
            "{AM} settled in",
            "my home is in",
            "{AM} a resident of",
            "my home is now in",
        ),
    ),
    (
        "works at",
        "organisation",
        "work (?:at|for|with)",
        "working (?:at|for)",
        ("{AM} employed (?:at|by)", "my (?:new |current )?employer is"),
    ),
    (
        "works as",
        "work",
        "work as",
        "working as",
        (
            "{AM} employed as",
            "(?:i|we) (?:make|earn) (?:a|my|our) living as",
            "my job is being",
            "{AM} (?=an? )",
            "{HAVE} been (?=an? )",
            "my (?:day )?job is (?:being )?(?=an? )",
        ),
    ),
    (
        "uses",
        "thing",
        "use",
        "using",
        ("{I} rely on", "(?:i|we) (?!used|was|had|did|\\w+ed )[a-z]+ (?:[\\w']+ ){0,5}?using"),
    ),
    ("owns", "thing", "own", "owning", ("{AM} the (?:\\w+ )?owner of",)),
    (
        "has",
        "possession",
        "have(?: got| had(?= .*since))?(?! (?:had|been)\\b)",
        "having",
        ("(?:i've|we've) got",),
    ),
    (
        "studies",
        "subject",
        "(?:study|major in)",
        "(?:studying|majoring in)",
        (
            "{AM} doing (?:a|my) (?:[\\w.']+ )?(?:degree|phd|ph\\.d\\.?|doctorate|masters?|"
            "master's|bachelors?|bachelor's|ma|msc|bsc|course|apprenticeship|diploma) in",
            "{AM} a (?:\\w+[ -])?(?:year |grad |graduate |phd )?student of",
            "my major is",
            "{AM} (?:taking|enrolled in) (?:a|an evening) (?:course|class|degree) in",
        ),
    ),
    (
        "speaks",
        "language",
        "speak",
        "speaking",
        (
            "{AM} fluent in",
            "{AM} bilingual in",
            "{AM} a native speaker of",
            "my (?:native|first|mother|second|third) (?:language|tongue) is",
        ),
    ),
    (
        "likes",
        "liked",
        "(?:like|love|enjoy|adore)(?: to)?",
        "(?:liking|loving|enjoying)",
        (
            "{AM} an? (?:\\w+ )?fan of",
            "{AM} (?:into|keen on|fond of|crazy about|mad about|obsessed with|"
            "passionate about|partial to)",
            "{I} have a soft spot for",
        ),
    ),
    (
        "dislikes",
        "liked",
        "(?:dislike|hate|detest|loathe|despise|can't stand|cannot stand|can't bear|"
        "cannot bear|can't abide)(?: to)?",
        "hating",
        (
            "{AM} not (?:an? |the )?(?:\\w+ )?fan of",
            "{AM} not (?:into|keen on|fond of)",
            "{AM} no fan of",
            "{I} (?:don't|do not|dont|never) (?:really |actually |much )?(?:like|enjoy)(?: to)?",
        ),
    ),
    ("prefers", "preferred", "prefer(?: to)?", "preferring", ("my preference is",)),
    (
        "plans to",
        "plan",
        "(?:plan|intend|aim) (?:to|on)",
        "(?:planning|intending|aiming) (?:to|on)",
        ("{AM} (?:going to|gonna)", "my plan(?:'s| is) to"),
    ),
    (
        "promised to",
        "promise",
        "promise (?:[\\w']+ ){0,4}?to",
        "promising to",
        (
            "(?:i|we|i've|we've|i have) (?:\\w+ )?promised (?:[\\w']+ ){0,4}?"
            "(?:to|(?:that )?i(?:'d| would|'ll| will))",
            "{I} gave (?:[\\w']+ ){1,3}my word (?:that )?(?:to|i(?:'d| would|'ll| will))",
            "{I} (?:swore|vowed|pledged) to",
        ),
    ),
    (
        "is allergic to",
        "things",
        "suffer from an allergy to",
        "suffering from an allergy to",
        ("{AM} allergic to", "(?:i|we)(?: have|'ve)(?: got)? an? (?:\\w+ )?allergy to"),
    ),
    (
        "is from",
        "origin",
        "(?:come|hail) from",
        "coming originally from",
        ("{AM} from", "{AM} a native of"),
    ),
    (
        "is married to",
        "name",
        "share my life with my (?:husband|wife)",
        "being married to",
        (
            "{AM} married to",
            "{I} (?:got )?married(?: to)?",
            "my (?:husband|wife|spouse),? (?:is (?:called|named) )?",
            "my (?:husband|wife|spouse)(?:'s name is| is called| is named)",
        ),
    ),
    (
        "is called",
        "own_name",
        "go by(?: the name(?: of)?)?",
        "going by(?: the name(?: of)?)?",
        (
            "(?:{I}|{HAVE}) changed my (?:\\w+ )?name to",
            "my (?:full |first |real )?name(?:'s| is)",
            "call me",
            "{AM} (?:called|named)",
            "(?:my friends|everyone|everybody|(?:most )?people|friends|folks)(?: just)? calls? me",
        ),
    ),
    ("was born", "birth", "was born(?: and raised)?(?= (?:in|on|at) )", "being born", ()),
)
_BEGINNINGS: tuple[tuple[str, str, str], ...] = (
    (
        "lives in",
        "moved_to",
        "(?:{I}|{HAVE}) (?:moved|relocated)(?: back| out| over| down| up)? to",
    ),
    ("lives in", "place", "(?:{I}|{HAVE}) settled in"),
    ("works at", "name", "(?:{I}|{HAVE}) joined"),
    (
        "works at",
        "organisation",
        "(?:{I}|{HAVE}) started(?: working| work| a(?: new)? job)? (?:at|for|with)",
    ),
    (
        "works at",
        "organisation",
        "(?:{I}|{HAVE}) (?:got|took|accepted|landed|started) (?:a|the|my)(?: new)? "
        "(?:job|position|role|post) (?:at|with)",
    ),
    (
        "works as",
        "work",
        "(?:{I}|{HAVE}) (?:became|become|retrained as|started(?: work| working)? as)",
    ),
    ("works as", "work", "(?:{I}|{HAVE}|i was) (?:got |been )?promoted to"),
    (
        "uses",
        "thing",
        "(?:{I}|{HAVE}) (?:switched|migrated|converted|changed over|moved over)(?: over)? to",
    ),
    ("uses", "thing", "(?:{I}|{HAVE}) (?:started|begun|began) using"),
    ("studies", "subject", "(?:{I}|{HAVE}) (?:started|begun|began) studying"),
)
_ENDINGS: tuple[tuple[str, str, str], ...] = (
    ("lives in", "place", "(?:{I}|{HAVE}) moved (?:out of|away from|out from)"),
    (
        "works at",
        "organisation",
        "(?:{I}|{HAVE}|i was|i got) (?:been )?(?:resigned from|retired from|"
        "laid off (?:from|by)|let go (?:from|by)|fired (?:from|by))",
    ),
    (
        "works at",
        "organisation",
        "(?:{I}|{HAVE}) (?:quit|left) (?:my )?(?:job|position|role|post) (?:at|with)",
    ),
    ("works at", "former_employer", "(?:{I}|{HAVE}) (?:quit|left)"),
    ("works as", "work", "{I} (?:used to be|gave up being|stopped being|quit being)(?= an? )"),
    ("works at", "name", "{AM} no longer (?:with|at)"),
    ("uses", "product", "{AM} (?:done|through|finished) with"),
    ("works as", "work", "{AM} no longer (?=an? )"),
    ("works as", "work", "{I} (?:quit|gave up)(?: my job)? as"),
    (
        "uses",
        "product",
        "(?:{I}|{HAVE}) (?:ditched|dropped|abandoned|uninstalled|deleted|left|quit|given up|"
        "gave up|got rid of|moved (?:away|off) (?:from )?)",
    ),
    ("studies", "subject", "(?:{I}|{HAVE}) dropped out of"),
    ("owns", "thing", "(?:{I}|{HAVE}) sold(?: off)?(?= (?:my|our|the) )"),
    ("has", "thing", "(?:{I}|{HAVE}) cancelled(?= (?:my|our) )"),
    ("likes", "liked", "(?:{I}|{HAVE}) (?:gone|went) off"),
    (
        "likes",
        "liked",
        "(?:{I}|{HAVE}) (?:lost interest in|fallen out of love with|grown tired of|grew tired of)",
    ),
    ("is married to", "name", "(?:{I}|{HAVE}) (?:got |been )?(?:divorced|separated)(?: from)?"),
    ("is married to", "name", "{AM} (?:now )?(?:divorced|separated) from"),
    (
        "plans to",
        "plan",
        "(?:{I}|{HAVE}) (?:scrapped|cancelled|abandoned|dropped|given up|gave up) "
        "(?:my|our|the) plans? to",
    ),
)
_NEGATED = "(?:i|we) (?:no longer|don't|do not|dont)"
_FORMS = {
    "{I}": "(?:i|we)(?:\\s+(?:ADVERBS))*",
    "{AM}": "(?:i'm|i\\s+am|im|we're|we\\s+are)(?:\\s+(?:ADVERBS))*",
    "{HAVE}": "(?:i've|i\\s+have|we've|we\\s+have)(?:\\s+(?:ADVERBS))*",
}


@cache
def patterns() -> tuple[Pattern, ...]:
    """Every wording; endings first, because "used to be" also looks like a beginning."""
    found: list[Pattern] = []
    for predicate, kind, says in _ENDINGS:
        found.append(Pattern(predicate, kind, _compiled(says), holds=False))
    for predicate, kind, base, gerund, _ in _STATES:
        found += _endings_of(predicate, kind, base, gerund)
    for predicate, kind, _, _, further in _STATES:
        found += _endings_of_being(predicate, kind, further)
    for predicate, kind, says in _BEGINNINGS:
        found.append(Pattern(predicate, kind, _compiled(says), begins=True))
    for predicate, kind, base, gerund, further in _STATES:
        ways = [f"{{I}} {base}", f"{{AM}} {gerund}", f"{{HAVE}} been {gerund}", *further]
        found += [Pattern(predicate, kind, _compiled(way)) for way in ways]
    return tuple(found)


def _endings_of(predicate: str, kind: str, base: str, gerund: str) -> list[Pattern]:
    never_end = {"was born", "is called", "is from", "promised to"}
    if predicate in never_end:
        return []
    sure = [
        f"(?:i|we) no longer {base}",
        f"{{AM}} no longer {gerund}",
        f"(?:{{I}}|{{HAVE}}) (?:stopped|quit|given up|gave up) {gerund}",
        f"(?:i|we) used to {base}",
    ]
    ended = [
        f"(?:i|we) (?:don't|do not|dont) (?:even |really )?{base}",
        f"{{AM}} not {gerund}",
    ]
    return [
        *(Pattern(predicate, kind, _compiled(way), holds=False) for way in sure),
        *(Pattern(predicate, kind, _compiled(w), holds=False, only_ended=True) for w in ended),
    ]


def _endings_of_being(predicate: str, kind: str, further: tuple[str, ...]) -> list[Pattern]:
    """The endings of being something: "no longer married to" from "married to"."""
    being = [way.removeprefix("{AM} ") for way in further if way.startswith("{AM} ")]
    ended = [way for way in being if not way.startswith(("not ", "no ", "(?:going", "(?=an"))]
    if predicate in {"is called", "is from"}:
        return []
    return [
        *(Pattern(predicate, kind, _compiled(f"{{AM}} no longer {w}"), holds=False) for w in ended),
        *(
            Pattern(predicate, kind, _compiled(f"{{AM}} not {w}"), holds=False, only_ended=True)
            for w in ended
        ),
    ]


def _compiled(says: str) -> re.Pattern[str]:
    adverbs = alternatives(vocabulary().adverbs)
    text = says
    for short, full in _FORMS.items():
        text = text.replace(short, full.replace("ADVERBS", adverbs))
    spaced = re.sub(r"(?<!\\) ", r"\\s+", text)
    # Either the wording ends a word, or it ended with the space before the object.
    return re.compile(rf"(?:{spaced})(?:(?!\w)|(?<=\s))", re.I)
