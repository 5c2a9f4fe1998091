"""Everything in one process: development server, worker, in-process engine.

Who may work on a data folder is decided in ``folder``; what starts and ends in which order, in
``parts``. ``server`` and ``guard`` keep Temporal's development server, ``erase`` cleans files.
"""
