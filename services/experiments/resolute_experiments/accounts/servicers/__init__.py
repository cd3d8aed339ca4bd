"""Handlers of AccessService, RolesService and WorkspacesService, and the messages that they answer with."""
