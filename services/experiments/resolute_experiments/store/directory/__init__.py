"""Users with their tokens and roles, workspaces with their projects, and what belongs to each workspace."""
