"""An older spelling of ``determined.launch`` that guides still use."""
