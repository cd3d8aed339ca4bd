"""Media: images, histograms, tables and so on that scripts log beside metrics.

They arrive by spools, exactly once, like reports. Small contents are stored in their rows, others in the
storage of the experiment's checkpoints under their digest. They are deleted with the experiment.
"""
