"""The output of `det`: JSON, CSV and lists with the keys, columns and spellings of Determined."""
