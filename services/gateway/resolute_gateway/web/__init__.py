"""HTTP besides the calls: the server, rules for browsers, and pages."""
