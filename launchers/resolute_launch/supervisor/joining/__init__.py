"""Where the containers of a run find each other before the script starts."""
