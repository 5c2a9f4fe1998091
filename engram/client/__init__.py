"""What applications hold: ``memory`` and its typed ``methods``, over one of two engines.

Whether a call is carried out in this process (``local``) or by another one (``http``) is decided
when a memory is opened or connected (``connect``); what it means, in ``engram/operations``.
"""
