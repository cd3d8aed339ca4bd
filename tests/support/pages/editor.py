"""The editor of configs and other documents of the page."""

from __future__ import annotations

from typing import Any


async def write(editor: Any, text: str) -> None:
    """Puts a text into an editor in the place of what is there, as a person pastes it."""
    await editor.press("Control+a")
    await editor.evaluate(
        """(editor, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            const pasted = {clipboardData, bubbles: true, cancelable: true};
            editor.dispatchEvent(new ClipboardEvent("paste", pasted));
        }""",
        text,
    )
