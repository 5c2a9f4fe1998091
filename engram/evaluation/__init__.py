"""How good recall is, measured on conversations and questions whose evidence is known.

What is measured comes from ``sets`` and ``questions``, goes through ``memories``, and is judged by
``metrics``: whether a difference is more than noise is decided there.
"""
