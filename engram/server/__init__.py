"""The HTTP API and the MCP server, behind one authentication.

Who gets in, and how often, is decided in ``middleware`` with ``keys``; what a route may do, where
its operation is declared (``engram/operations``), and for the few others in ``routes``.
"""
