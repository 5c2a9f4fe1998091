"""The numbers that digests are composed by."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class DigestPolicy(BaseModel):
    """Fixed by whoever starts a consolidation, so that its passes agree.

    Attributes:
        enabled: Whether passes end with a digest stage.
        profile_lines: Lines of a profile at most.
        profile_bytes: Past so many bytes of text, lesser lines of a profile are folded
            into summarising ones, until it fits (8 KB).
        profile_memories: Memories that one profile is composed from at most.
        profile_reads: Memories that are read anew for one profile.
        topics: Topics that are kept at most.
        topic_members: Memories that make a topic.
        box_overlap: A box is sealed when the topic overlap with the next turn falls
            below this.
        box_idle_minutes: A box is sealed when nothing came for so long.
        box_turns: Turns that a box holds at most.
        box_smoothing: Content words that a turn is taken to share with the box in any
            case, so that a short reply seals nothing.
        guidance_evidence: Memories of one kind before guidance is drawn from them.
        guidance_share: Share of them that must have come to nothing.
        soon_days: A memory that is replaced within so many days was replaced soon.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    enabled: bool = True
    profile_lines: int = Field(default=40, ge=5, le=200)
    profile_bytes: int = Field(default=8 * 1024, ge=512, le=64 * 1024)
    profile_memories: int = Field(default=200, ge=10, le=1000)
    profile_reads: int = Field(default=50, ge=5, le=1000)
    topics: int = Field(default=50, ge=1, le=500)
    topic_members: int = Field(default=3, ge=2, le=50)
    box_overlap: float = Field(default=0.35, ge=0, le=1)
    box_idle_minutes: float = Field(default=30.0, gt=0)
    box_turns: int = Field(default=50, ge=1, le=500)
    box_smoothing: float = Field(default=1.5, ge=0, le=20)
    guidance_evidence: int = Field(default=10, ge=1)
    guidance_share: float = Field(default=0.5, ge=0, le=1)
    soon_days: float = Field(default=7.0, gt=0)
