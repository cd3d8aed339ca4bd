"""``resolute mcp``: experiments for assistants that speak the Model Context Protocol."""
