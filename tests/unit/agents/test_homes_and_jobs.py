"""Whoever moves house or changes work is believed; a gym, a medicine or a bank is neither."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import a_turn_a_day, told


def _known(*said: str) -> set[str]:
    known = told(a_turn_a_day(*said)).known.values()
    return {one.content for one in known if one.superseded_by is None}


MOVED = [
    ("I live in Leeds", "I joined AWS and moved to Seattle", "The user lives in Seattle."),
    ("I live in Leeds", "I work at AWS and moved to Berlin", "The user lives in Berlin."),
    ("I live in Leeds", "I moved to Berlin to work on Azure", "The user lives in Berlin."),
    ("I live in Leeds", "I moved to Dublin for the AWS job", "The user lives in Dublin."),
    ("I live in Leeds", "We moved to Ilkley from Otley", "The user lives in Ilkley."),
    ("", "We moved to Ilkley from Slough in 2019", "The user lives in Ilkley."),
    ("I live in Leeds", "I moved to Luton from Watford", "The user lives in Luton."),
    ("I live in Leeds", "we moved to Ilkley for the grandkids", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for a bigger place", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for lower taxes", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for the hiking", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for the view", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for more room", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for the dogs", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for safety", "The user lives in Ilkley."),
    ("I live in Leeds", "we moved to Ilkley for medical reasons", "The user lives in Ilkley."),
    (
        "I live in Leeds",
        "I moved to Ilkley, need a repeat prescription",
        "The user lives in Ilkley.",
    ),
    ("I live in Leeds", "I quit my gym because I moved to Ilkley", "The user lives in Ilkley."),
    (
        "I live in Leeds",
        "we cancelled the delivery because we moved to Ilkley",
        "The user lives in Ilkley.",
    ),
    ("I live in Leeds", "My plan worked: I moved to Ilkley", "The user lives in Ilkley."),
    ("I live in Leeds", "Moved: Ilkley", "The user lives in Ilkley."),
    ("I live in Leeds", "Just moved: Berlin", "The user lives in Berlin."),
    ("I live in Leeds", "Siemens relocated me to Erlangen", "The user lives in Erlangen."),
    (
        "I live in Leeds",
        "My husband's job moved us to Basingstoke",
        "The user lives in Basingstoke.",
    ),
    ("I live in Leeds", "They transferred me to Erlangen", "The user lives in Erlangen."),
    ("I live in Leeds", "We moved to Friday Harbor", "The user lives in Friday Harbor."),
    ("I work at HSBC", "I moved to Lloyds", "The user works at Lloyds."),
    ("I work at UPS", "I moved to FedEx", "The user works at FedEx."),
    ("I work at Tesco", "I moved to Aldi last week", "The user works at Aldi."),
    (
        "I work at Siemens",
        "I moved from Barclays to HSBC last year",
        "The user no longer works at Barclays.",
    ),
    ("I work at Siemens", "I moved to Bosch for the pension", "The user works at Bosch."),
    ("I work at Siemens", "I moved to Bosch for the people", "The user works at Bosch."),
    ("I work at Siemens", "I moved to Bosch for less stress", "The user works at Bosch."),
    ("I work at Siemens", "I moved to Bosch for growth", "The user works at Bosch."),
    (
        "",
        "I moved to Ilkley for the fishing last spring",
        "The user lives in Ilkley.",
    ),
    (
        "I live in Leeds",
        "We moved to Otley because the broadband here was awful",
        "The user lives in Otley.",
    ),
    ("I live in Leeds", "I've moved to Skipton and need a new GP", "The user lives in Skipton."),
    ("I live in Leeds", "Changed gym and moved to Otley", "The user lives in Otley."),
    ("I live in Leeds", "I switched bank, then moved to Otley", "The user lives in Otley."),
    ("I live in Leeds", "The club and I moved to Otley", "The user lives in Otley."),
    ("I live in Leeds", "Just moved: Otley!", "The user lives in Otley."),
    ("I live in Leeds", "Update: just moved, Otley now", "The user lives in Otley."),
    (
        "",
        "They transferred us to Fort Hood last year",
        "The user lives in Fort Hood.",
    ),
    ("I live in Leeds", "My wife's work moved us to Otley", "The user lives in Otley."),
    ("I live in Leeds", "My firm seconded me to Zug", "The user lives in Zug."),
    ("I live in Leeds", "I moved to Thursday Island", "The user lives in Thursday Island."),
    ("I live in Leeds", "I moved to Ripon for data science", "The user lives in Ripon."),
    ("I live in Leeds", "I moved to Ripon for my accounts job", "The user lives in Ripon."),
    ("I live in Leeds", "I moved to Hull, my injections are due", "The user lives in Hull."),
    ("I live in Leeds", "We moved to Bude for the gas works job", "The user lives in Bude."),
    ("I live in Leeds", "I quit the gym, moved to Otley", "The user lives in Otley."),
    ("I work at HSBC", "I quit and moved to Lloyds", "The user works at Lloyds."),
    ("I work at HSBC", "I moved to Waitrose as a baker", "The user works at Waitrose."),
    ("I work at HSBC", "I recently moved to DHL", "The user works at DHL."),
    ("I work at HSBC", "I moved to Bosch for better coffee", "The user works at Bosch."),
    ("", "I moved to Lloyds in May", "The user works at Lloyds."),
]
NO_MOVE = [
    ("I live in Leeds", "changed gym: moved to the PureGym in Headingley"),
    ("I live in Lyon", "doc moved me to Ozempic"),
    ("I live in Lyon", "nurse moved me to Trulicity"),
    ("I live in Lyon", "consultant moved me to Metformin SR"),
    ("I live in Lyon", "I moved to Lantus from Humulin"),
    ("I live in Lyon", "I moved to SR 1000mg"),
    ("I live in Lyon", "your colleague transferred me to Martin"),
    ("I live in Lyon", "transferred me to Billing, then to Returns"),
    ("I live in Lyon", "she wants the deadline moved: DISP-420 now due march 27"),
    ("I live in Lyon", "standup moved: Room 4 from now on"),
    ("I live in Lyon", "appointment moved: Chapel Allerton surgery instead"),
    ("I live in Lyon", "physio relocated, Roundhay now"),
    ("I work at Parcelly", "moved to Lloyds, barclays app was awful"),
    ("I work at Parcelly", "moved to Lidl for the weekly shop"),
    ("I work at Parcelly", "moved to Sky from BT, cheaper"),
    ("I work at Parcelly", "i've moved to Boots for my prescriptions"),
    ("I work at Parcelly", "we moved to Klarna for the payments"),
    ("I live in Lyon", "I've moved to Dr Patel"),
    ("I live in Lyon", "moved to the Tuesday group"),
    ("I live in Lyon", "moved to Octopus for electricity"),
    ("I live in Lyon", "moved to Oatly, milk gives me cramps"),
    ("I live in Lyon", "moved to Slimming World from weight watchers"),
    ("I live in Lyon", "moved to Frankfurt region (eu-central-1) for the buckets"),
    ("I live in Lyon", "moved to Nexus for artifacts"),
    ("I live in Lyon", "we live in Jira these days lol"),
    ("I live in Lyon", "i basically live in the PureGym"),
    ("I live in Leeds", "changed bank: moved to Monzo"),
    ("I live in Leeds", "The meeting moved to Frankfurt"),
    ("I live in Leeds", "I moved the buckets to Frankfurt"),
    ("I live in Leeds", "I moved to Hetzner for hosting"),
    ("I live in Leeds", "we moved to GitLab for CI"),
    ("I work at Parcelly", "I moved to Aldi, it's cheaper"),
    ("I work at Parcelly", "I moved to Monzo"),
    ("I work at Parcelly", "I moved to Vodafone, better contract"),
    ("I work at Parcelly", "My husband moved to Lloyds"),
    ("I work at Parcelly", "we moved to Sky for broadband"),
    ("I live in Lyon", "Moved: Friday"),
    ("I live in Lyon", "Moved: DISP-420"),
    ("I live in Lyon", "Moved: Tesco"),
    ("I live in Lyon", "They transferred me to Billing"),
    ("I live in Lyon", "They transferred me to Sales, then to Returns"),
    ("I live in Lyon", "Vodafone transferred me to Returns"),
    ("I live in Lyon", "The bank transferred me to Fraud"),
    ("I live in Lyon", "The hospital relocated me to Ward 4"),
    ("I live in Lyon", "I moved to Frankfurt eu-central-1"),
    ("I live in Lyon", "we moved to Frankfurt for the hosting"),
    ("I live in Lyon", "I've moved to Trulicity, the injections hurt less"),
    ("I live in Lyon", "My company moved us to Slack"),
    ("I work at Parcelly", "I moved to Lloyds, the app is better"),
    ("I work at Parcelly", "I've moved to Starling for the savings rate"),
    ("I work at Parcelly", "We moved to Lloyds"),
    ("I work at Parcelly", "moved to Lloyds"),
    ("I work at Parcelly", "I moved to Tesco, cheaper than Sainsbury's"),
    ("I work at Parcelly", "We've moved to Asda"),
    ("I work at Parcelly", "I moved from BT to Sky"),
    ("I work at Parcelly", "I moved from EE to Vodafone last year"),
    ("I work at Parcelly", "I moved to Bosch for electricity"),
]


@pytest.mark.parametrize(("before", "said", "learns"), MOVED)
def test_a_move_takes_the_place_of_what_was_so(before: str, said: str, learns: str) -> None:
    """Why, from where and who sent them is no doubt, nor what else the sentence is about."""
    known = _known(*filter(None, (before, said)))
    kind = " ".join(learns.split()[:4])
    assert {one for one in known if one.startswith(kind)} == {learns}


@pytest.mark.parametrize(("before", "said"), NO_MOVE)
def test_what_is_no_home_and_no_employer_takes_no_place(before: str, said: str) -> None:
    """What was so stays so, and nothing else of its kind is told."""
    kind = " ".join(before.split()[1:3]).replace("live", "lives").replace("work ", "works ")
    told_so = {one for one in _known(before, said) if one.startswith(f"The user {kind} ")}
    assert told_so == _known(before)
