"""The language in which people say which experiments and trials they want."""
