"""The expressions that name a date, as regular expressions over lower-case text."""

from __future__ import annotations

import re

from engram.extraction.patterns.numerals import WORDS

MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?)"
)
WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_SHORT_WEEKDAY = r"(?:mon|tues|tue|wed|thurs|thur|thu|fri|sat|sun)"
_COUNT = rf"(?:\d{{1,3}}|an?|{WORDS})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_LEFT = r"(?<![\w./:@#$-])"
_RIGHT = r"(?![\w]|[-/]\w|\.\d|@)"
_PREPOSITION = r"(?:(?:on|in|at|since)\s)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

GATE = re.compile(
    r"\b(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|(?:19|20)\d\d|"
    r"(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?|"
    r"today|tonight|tomorrow|yesterday|ago|in (?:\w+[ -]){1,2}(?:day|week|month|year)s?|"
    r"(?:next|last|this) (?:day|week|month|year|night|morning|afternoon|evening)|"
    r"from now|(?:week|month|year) (?:before last|after next)|\d\d?[./]\d\d?[./]\d{4})\b"
)

ISO = re.compile(
    rf"{_PREPOSITION}(?<![\w./:@#$-])(?P<year>\d{{4}})(?P<mark>[-/])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
    r"(?:(?:t|,?\s(?:at\s)?)(?P<hour>\d\d):(?P<minute>\d\d)(?::\d\d(?:\.\d{1,9})?)?"
    r"(?:z|[+-]\d\d:?\d\d)?)?(?![\w/]|-\d|\.\d|:\d)"
)
NUMERIC = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?P<first>\d{{1,2}})(?P<mark>[./])(?P<second>\d{{1,2}})(?P=mark)"
    rf"{_YEAR}{_RIGHT}"
)
DAY_MONTH = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?:(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}),?\s)?(?:the\s)?{_DAY}(?:\sof)?\s"
    rf"(?P<month>{MONTH})(?:,?\s{_YEAR})?{_RIGHT}"
)
MONTH_DAY = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?:(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}),?\s)?(?P<month>{MONTH})\s(?:the\s)?"
    rf"{_DAY}(?:,?\s{_YEAR})?(?![\w]|[:.,%/]\d|\s?(?:am|pm|percent|people|times)\b|@)"
)
MONTH_YEAR = re.compile(rf"{_PREPOSITION}{_LEFT}(?P<month>{MONTH}),?\s(?:of\s)?{_YEAR}{_RIGHT}")
DAY_WORD = re.compile(
    rf"{_LEFT}(?:(?:the\s)?(?P<around>day\s(?:before\syesterday|after\stomorrow))"
    r"|(?P<word>today|tonight|tomorrow|yesterday|last night|this (?:morning|afternoon|evening)))"
    r"(?![\w@]|-\w|/\w)"
)
AGO = re.compile(
    rf"{_LEFT}(?P<count>{_COUNT})[\s-]{_UNIT}\sago(?:\s(?P<from>today|yesterday))?(?!\w)"
)
AHEAD = re.compile(
    rf"{_LEFT}in\s(?:exactly\s)?(?P<count>{_COUNT})[\s-]{_UNIT}(?:'\stime|s'\stime|'s\stime)?(?![\w'-])"
)
FROM_NOW = re.compile(
    rf"{_LEFT}(?:in\s)?(?P<count>{_COUNT})[\s-]{_UNIT}\sfrom\s(?P<from>now|today|tomorrow)(?!\w)"
)
PERIOD = re.compile(
    rf"{_LEFT}{_PREPOSITION}(?:(?:the\s)(?P<far>(?P<far_unit>week|month|year)\s(?:before\slast|after\snext))|"
    r"(?P<which>next|last|this)\s(?P<unit>week|month|year))(?![\w-])"
)
WEEKDAY_OF_WEEK = re.compile(
    rf"{_LEFT}(?:on\s)?(?:(?P<weekday>{WEEKDAY}),?\s(?:of\s)?(?P<which>next|last|this)\sweek"
    rf"|(?P<which_first>next|last|this)\sweek(?:,|\son)?\s(?P<weekday_last>{WEEKDAY}))(?![\w-])"
)
WHICH_WEEKDAY = re.compile(
    rf"{_LEFT}(?:on\s)?(?P<which>next|last|this coming|coming|this past|this)\s"
    rf"(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}\b\.?)(?![\w-])"
)
ON_WEEKDAY = re.compile(
    rf"{_LEFT}(?P<lead>on|by|until|till|since|before|see (?:you|u|ya)(?: on)?)\s"
    rf"(?P<weekday>{WEEKDAY}|(?:mon|tues|tue|wed|thurs|thur|thu|fri)\b\.?)(?![\w-])"
)
TIMED_WEEKDAY = re.compile(
    rf"{_LEFT}(?P<weekday>{WEEKDAY})(?=,?\s(?:(?:morning|afternoon|evening|night)\s)?(?:at|@)\s?\d)"
)
MONTH_ALONE = re.compile(
    rf"{_LEFT}(?P<lead>in|since|last|until|till|by)\s(?:early\s|mid-?\s?|late\s)?(?P<month>{MONTH})(?![\w'-]|\s\d)"
)
YEAR = re.compile(
    rf"{_LEFT}(?P<lead>in|since|until|till|by|before|after|back in|(?:spring|summer|autumn|"
    rf"fall|winter|"
    rf"class|year|end|start|beginning|middle)(?: of)?|during|early|late|mid)[\s-](?:early\s|"
    rf"late\s)?{_YEAR}"
    r"(?![\w-]|[/.,:]\d|%|@)"
)

NOT_A_DAY_AFTER = re.compile(
    r"\s(?:before last|after next|week\b|the \d|nights|mornings|evenings|afternoons|"
    r"by the beatles|by the)"
)
UNIT_AFTER_YEAR = re.compile(
    r"\s(?:words?|steps?|people|lines?|pieces?|met(?:er|re)s?|miles?|kilomet(?:er|re)s?|km|m|kg|g|cal\w*|"
    r"kcal|dollars?|euros?|pounds?|users?|rows?|items?|pages?|games?|hours?|minutes?|seconds?|days?|weeks?|"
    r"months?|years?|points?|votes?|calls?|requests?|tokens?|characters?|files?|times|bc|bce|feet|ft|watts?|"
    r"rpm|mah|square|units?|copies|members|employees|customers|attempts|repetitions|reps|tries|others)\b"
)
