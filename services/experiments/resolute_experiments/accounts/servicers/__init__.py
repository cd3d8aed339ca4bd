"""Handlers of AccessService, RolesService and WorkspacesService, and their response messages."""
