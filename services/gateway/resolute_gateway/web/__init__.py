"""What an HTTP request meets before and beside the calls: the server, browsers' rules, pages."""
