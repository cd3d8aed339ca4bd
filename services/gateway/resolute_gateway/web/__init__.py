"""The HTTP side besides the calls: the server, rules for browsers, pages."""
