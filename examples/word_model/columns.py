"""Reading a text in columns."""

from torch.utils.data import Dataset, Sampler


class Windows(Dataset):
    """Item `i` is the window of `length` words that begins at word `i`, and the word that follows each."""

    def __init__(self, tokens, length):
        self.tokens = tokens
        self.length = length

    def __len__(self):
        return len(self.tokens) - self.length

    def __getitem__(self, start):
        window = self.tokens[start : start + self.length + 1]
        return window[:-1], window[1:]


class Columns(Sampler):
    """Batches in which each row goes on where the same row of the batch before stopped.

    The text is cut into as many columns as there are rows on all slots. The data loader gives every
    `slots`-th batch to a slot, so the slots take turns here: each reads columns of its own, top to bottom.

    Args:
        windows: The data set.
        rows: Rows of a batch of one slot.
        slots: How many slots share the text.
    """

    def __init__(self, windows, *, rows, slots):
        self.length = windows.length
        self.rows = rows
        self.slots = slots
        self.height = len(windows) // (rows * slots)
        self.steps = self.height // self.length

    def __len__(self):
        return self.steps * self.slots

    def __iter__(self):
        for step in range(self.steps):
            for slot in range(self.slots):
                columns = range(slot * self.rows, (slot + 1) * self.rows)
                yield [column * self.height + step * self.length for column in columns]
