"""Images, histograms, tables and so on that scripts log beside metrics.

They arrive by spools, exactly once, as reports do. Small contents are kept in their rows, others in the
storage of the experiment's checkpoints under their digest; all of it goes with the experiment.
"""
