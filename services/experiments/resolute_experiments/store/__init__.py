"""Rows of the experiments service as typed values, and the statements that read and write them."""
