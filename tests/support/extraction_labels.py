"""Labelled turns, and how extraction is measured on them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.domain.memories import FactCategory
from engram.language.extractor import extract_facts
from engram.language.found import Extraction
from engram.language.negation import find_negations
from engram.language.negation_scope import pattern_terms

DATA = Path(__file__).parents[1] / "data"


@dataclass
class Score:
    """Hits, false finds and misses, with the texts they came from."""

    hits: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """The part of what was found that is right; 1 when nothing was."""
        return self.hits / max(1, self.hits + len(self.false)) if self.hits or self.false else 1.0

    @property
    def recall(self) -> float:
        """The part of what is there that was found; 1 when nothing is."""
        return self.hits / max(1, self.hits + len(self.missed)) if self.hits or self.missed else 1.0

    def count(self, found: Counter[Any], wanted: Counter[Any], text: str) -> None:
        """Add one turn."""
        self.hits += (found & wanted).total()
        self.false += [f"{text} -> {item}" for item in (found - wanted).elements()]
        self.missed += [f"{text} -> {item}" for item in (wanted - found).elements()]


def items(topic: str, half: str) -> list[dict[str, Any]]:
    """The labelled turns of a topic, "seen" or "held"."""
    lines = (DATA / f"{topic}.{half}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def fact_scores(half: str) -> dict[FactCategory, Score]:
    """How well pattern facts are found, by category."""
    scores = {category: Score() for category in FactCategory}
    for topic in ("contacts", "dates"):
        for item in items(topic, half):
            facts = extract_facts(item["text"], datetime.fromisoformat(item["timestamp"]))
            wanted = [(fact["category"], fact["value"]) for fact in item.get("facts", ())]
            wanted += [("date", label["value"]) for label in item.get("dates", ())]
            for category, score in scores.items():
                if (topic == "contacts") == (category is FactCategory.DATE):
                    # Each topic is labelled for its own categories only.
                    continue
                score.count(
                    Counter(fact.value for fact in facts if fact.category is category),
                    Counter(value for name, value in set(wanted) if name == category),
                    item["text"],
                )
    return scores


def negation_score(half: str) -> Score:
    """How well negations are found: same subject, same stems of verb and object."""
    score = Score()
    for item in items("negations", half):
        found = Counter(
            (negation.subject, frozenset(pattern_terms(negation.negates_pattern)))
            for negation in find_negations(item["text"])
        )
        wanted = Counter(
            (
                label["subject"],
                frozenset(pattern_terms(f"{label['predicate']} {label['object']}".strip())),
            )
            for label in item["negations"]
        )
        score.count(found, wanted, item["text"])
    return score


def words_wrongly_negated(half: str) -> list[str]:
    """Labels say what a turn affirms: those that a negation takes in all the same."""
    wrong = []
    for item in items("negations", half):
        for negation in find_negations(item["text"]):
            terms = set(pattern_terms(negation.negates_pattern))
            for affirmed in item["not_negated"]:
                stems = set(pattern_terms(affirmed))
                if stems and stems <= terms:
                    wrong.append(f"{item['text']} -> {negation.negates_pattern}")
    return wrong


def found_in_ordinary_talk(half: str) -> list[str]:
    """What is found where nothing is."""
    found = []
    for item in items("ordinary", half):
        text = item["text"]
        facts = extract_facts(text, datetime.fromisoformat(item["timestamp"]))
        found += [f"{text} -> {fact.content}" for fact in facts]
        found += [f"{text} -> {negation.content}" for negation in find_negations(text)]
    return found


def is_verbatim(extraction: Extraction, text: str) -> bool:
    """Whether every piece of evidence stands in the text, letter for letter."""
    evidence = [fact.evidence for fact in extraction.facts]
    evidence += [negation.evidence for negation in extraction.negations]
    return all(piece and piece in text for piece in evidence)
