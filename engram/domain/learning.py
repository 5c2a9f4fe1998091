"""How a namespace shapes what is learnt from its turns: instructions, categories, types, examples.

It is the operator's, comes with the settings of a worker, and reaches language models beside
Engram's own instructions. It never loosens what is checked of their answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from engram.domain.memories import Category

# Together they bound what each request to a model grows by: about 60 KB at the very most.
_MOST_INSTRUCTIONS: Final = 4000
_MOST_NAMES: Final = 30
_MOST_EXAMPLES: Final = 12
_LONGEST_NAME: Final = 50
_LONGEST_SENTENCE: Final = 500
_LONGEST_TURN: Final = 1500

_Name = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST_NAME)
]
_Sentence = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST_SENTENCE)
]


class _LearningPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class OwnCategory(_LearningPart):
    """A category of the namespace's own.

    Attributes:
        name: As it is kept among the tags of what is learnt: lower case, at most 50 characters.
        category: The one of the ten that it stands for, which decides what later knowledge may do.
        meaning: What belongs there, in a sentence.
    """

    name: _Name
    category: Category
    meaning: str = Field(default="", max_length=_LONGEST_SENTENCE)

    @field_validator("name")
    @classmethod
    def _as_tags_are(cls, name: str) -> str:
        """Tags are kept in lower case, and no name may mean two categories."""
        plain = " ".join(name.casefold().split())[:_LONGEST_NAME]
        if plain in {one.value for one in Category}:
            raise ValueError("is one of the ten categories already")
        return plain


class TurnExample(_LearningPart):
    """What is to be learnt of a turn.

    Attributes:
        turn: The words, at most 1,500 characters.
        statements: What they state, each a sentence; none where nothing is to be learnt of it.
    """

    turn: str = Field(min_length=1, max_length=_LONGEST_TURN)
    statements: tuple[_Sentence, ...] = Field(default=(), max_length=_MOST_EXAMPLES)


class LinkExample(_LearningPart):
    """Whether two memories belong together.

    Attributes:
        first: A memory, as a sentence.
        second: Another one.
        kind: Of the link between them; ``none`` where there is to be none.
    """

    first: _Sentence
    second: _Sentence
    kind: Literal["related", "entity", "time", "causal", "reinforces", "none"] = "related"


class LearningRules(_LearningPart):
    """What one namespace asks of extraction and linking.

    Attributes:
        instructions: What to look for and what to leave out, at most 4,000 characters.
        categories: Further categories, at most 30.
        entity_types: Kinds of things whose names are to be kept as entities, at most 30.
        examples: Of turns, for extraction; at most 12.
        links: Of pairs, for linking; at most 12.
    """

    instructions: str = Field(default="", max_length=_MOST_INSTRUCTIONS)
    categories: tuple[OwnCategory, ...] = Field(default=(), max_length=_MOST_NAMES)
    entity_types: tuple[_Name, ...] = Field(default=(), max_length=_MOST_NAMES)
    examples: tuple[TurnExample, ...] = Field(default=(), max_length=_MOST_EXAMPLES)
    links: tuple[LinkExample, ...] = Field(default=(), max_length=_MOST_EXAMPLES)

    @field_validator("categories")
    @classmethod
    def _each_once(cls, categories: tuple[OwnCategory, ...]) -> tuple[OwnCategory, ...]:
        if len({one.name for one in categories}) < len(categories):
            raise ValueError("a category is named twice")
        return categories

    @property
    def version(self) -> str:
        """Twelve hex digits that follow from all of it: other rules have another version."""
        said = self.model_dump_json(exclude_defaults=True)
        return hashlib.sha256(said.encode()).hexdigest()[:12]

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of what is given."""
        return tuple(name for name in type(self).model_fields if getattr(self, name))

    @property
    def stands_for(self) -> Mapping[str, Category]:
        """One of the ten categories for each own one, by name."""
        return {one.name: one.category for one in self.categories}

    @property
    def for_extraction(self) -> Self:
        """Without what only linking needs."""
        return self.model_copy(update={"links": ()})

    @property
    def for_linking(self) -> Self:
        """Without what only extraction needs."""
        return self.model_copy(update={"examples": (), "categories": ()})


def version_with(instructions: str, learning: LearningRules | None) -> str:
    """The version of instructions that a model was given, with that of a namespace's own."""
    return instructions if learning is None else f"{instructions}+{learning.version}"
