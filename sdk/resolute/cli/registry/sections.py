"""The order of commands in `resolute --help`. Commands that the help leaves out work like all others."""

from __future__ import annotations

from collections.abc import Mapping

SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Train": ("init", "run", "experiment", "search", "command", "demo"),
    "Look": ("logs", "trial", "top", "open", "explain", "diff", "trace", "cost", "tensorboard"),
    "Steer and keep": ("job", "checkpoint", "model", "promote", "reproduce", "alert"),
    "Share": ("user", "token", "secret", "workspace", "project", "template"),
    "Run a cluster": ("up", "status", "doctor", "backup", "restore", "down", "admin"),
    "Tools": ("config", "completion", "sync", "import", "compat", "mcp", "help", "version"),
}
"""Titles, with the commands that people use every day."""

ADMIN = (
    *("agent", "slot", "resource-pool", "master", "task", "storage", "config-policies", "rbac", "audit"),
    *("db", "adopt-copy", "take-over", "rotate-key", "dev"),
)
"""What `resolute admin` shows."""

SAME = ("login", "preview-search")
"""Other names of `user login` and of `search preview`."""
