"""Commands of `resolute experiment` that show something and change nothing."""
