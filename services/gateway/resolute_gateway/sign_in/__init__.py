"""Browser sessions: a one-time code is exchanged for a cookie that stands for a token."""
