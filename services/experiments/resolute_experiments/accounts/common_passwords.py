"""Common passwords: words that are guessed first, sequences of keys, and variants of the user's name.

A cluster allows five attempts a minute for a name. This does not stop a list of a few hundred passwords, so
those are refused. Longer lists are used against stolen hashes, which scrypt makes expensive.
"""

from __future__ import annotations

import re

_WORDS = frozenset(
    """
    abc abcd abcdef access account action admin administrator aloha andrew angel anna anthony apple april
    arsenal asdf asdfgh asdfghjkl ashley august austin autumn baby babygirl bailey banana barcelona
    baseball basketball batman beautiful biteme blink butterfly carlos changeme changeit charlie cheese
    chelsea chocolate computer cookie corvette cowboy daniel december default demo determined diamond
    donald dragon eagle email everton facebook falcon february ferrari flower football forever freedom
    friday friend fuckyou gandalf george ginger google guest hallo hammer hannah hello hockey hunter
    iloveu iloveyou incorrect internet january jasmine jennifer jessica jesus jordan joshua july june
    justin killer king lakers letmein liverpool login london lovely loveme lover lucky maggie manager
    march master matrix matthew maverick mercedes merlin michael michelle mickey monday money monkey
    monster morgan mustang naruto newpassword nicole nirvana november october ok operator orange pass
    passw passwd passwort password patrick pepper phoenix pokemon princess private purple pwd qazwsx qwe
    qwer qwert qwerty qwertyuiop qwertz qwertzuiop ranger rachel resolute robert root samsung sample
    samantha saturday secret security september server shadow silver slipknot snoopy soccer softball
    spring starwars student summer sunday sunshine superman support sysadmin system taylor temp temporary
    test tester testing thomas thunder thursday tigger toor training trustno tuesday unknown user vampire
    victoria wednesday welcome whatever william winter wizard yankees yellow zaq zxcv zxcvbn zxcvbnm
    """.split()  # noqa: SIM905 - words, not a list of literals
)
_ROWS = (
    *("abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "azertyuiop"),
    *("1234567890", "0123456789", "1qaz2wsx3edc4rfv5tgb", "qazwsxedcrfvtgb"),
    *("1q2w3e4r5t6z7u8i9o0p", "1q2w3e4r5t6y7u8i", "q1w2e3r4t5z6u7i8", "q1w2e3r4t5y6u7i8"),
)
_DISGUISES = str.maketrans("@4301!$57", "aaeolisst")
_MOST_OTHER_LETTERS = 2
_MOST_DIGITS_AND_SIGNS = 8
"""What stands beside common words without making a password of one's own."""
_LONGEST = 64
"""Longer passwords are not on lists."""


def is_common(password: str, *, user_name: str) -> bool:
    """Whether a password is one of those that are guessed first.

    Case, digits and signs around a word, and the usual signs for letters (``P@ssw0rd!2024``) do not count.

    Args:
        password: The password.
        user_name: Whose it is to be.
    """
    plain = password.casefold()
    if len(plain) > _LONGEST:
        return False
    if "".join(filter(str.isalnum, plain)).isdigit() or _is_run(plain):
        return True
    if sum(not letter.isalpha() for letter in plain) > _MOST_DIGITS_AND_SIGNS:
        return False
    own = {part for part in re.split(r"[\W\d_]+", user_name.casefold()) if len(part) > 2}
    return any(
        _other_letters(_letters(spelling), _WORDS | own) <= _MOST_OTHER_LETTERS
        for spelling in (plain, re.sub(r"[\W\d_]+$", "", plain).translate(_DISGUISES))
    )


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalpha())


def _other_letters(text: str, words: frozenset[str]) -> int:
    """The fewest letters that remain when words are taken out; more than all if none can be."""
    fewest, holds_word = [0], [False]
    for end in range(1, len(text) + 1):
        choices = [(fewest[-1] + 1, holds_word[-1])]
        choices += [(fewest[end - len(word)], True) for word in words if text.endswith(word, 0, end)]
        best = min(choices, key=lambda choice: (choice[0], not choice[1]))
        fewest.append(best[0])
        holds_word.append(best[1])
    return fewest[-1] if holds_word[-1] else len(text) + _MOST_OTHER_LETTERS + 1


def _is_run(text: str) -> bool:
    """Whether a text is a short piece again and again, or keys beside each other."""
    pieces = (text[:length] for length in range(1, min(4, len(text) // 2) + 1))
    if any(text == (piece * len(text))[: len(text)] for piece in pieces):
        return True
    return any(text in line or text in line[::-1] for line in (row * 2 for row in _ROWS))
