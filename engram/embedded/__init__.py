"""Everything in one process: development server, worker, in-process engine."""
