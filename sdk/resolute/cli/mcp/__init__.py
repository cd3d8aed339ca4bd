"""``resolute mcp``: experiments as tools of the Model Context Protocol."""
