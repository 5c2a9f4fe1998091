"""Everything that reads English without a language model: rules, and word lists in ``data``.

- Sentences, words and quotations, for all readers alike: ``text``.
- What a stored turn yields at once (facts, negations, signal): ``extractor``.
- What a turn states, for consolidation: ``statements``.
- Times, of turns and of questions: ``dates`` and ``periods``, over ``calendar``.
- What is denied: ``negation``; whether a denial speaks of a memory: ``negation_scope``, and of
  what time: ``before``.
- What a question asks for: ``query``. What is personal, and what becomes of it: ``personal_data``,
  ``guarding``.
"""
