"""Pictures of every view of the page, of a cluster that trains."""
