"""Doubles of MCP servers: recordings that are made and replayed, and mocks."""
