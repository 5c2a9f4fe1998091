"""The HTTP API and the MCP server, behind one authentication."""
