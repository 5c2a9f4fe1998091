"""From what was said to what is known.

- Storing turns, and the facts that patterns find in them: ``turns``, ``findings``.
- What statements mean for what is known, as a plan: ``reconcile``, a pure function. What replaces
  what is decided in ``timeline``; which values exclude each other, in ``engram/domain/slots.py``.
- What a linking model's word is worth, and when a dispute ends: ``decisions``, ``disputes``.
- Doing it: ``taking_up`` has the order of the steps, ``apply`` writes a plan, ``amendments`` says
  what an update makes of a memory. Undoing it: ``forgetting``.
"""
