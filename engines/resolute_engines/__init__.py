"""Engines: they run the containers or jobs of trials on their pools of machines.

`protocol` is what every engine implements. Each of ours is a subpackage, which `plugins` opens by the type
that the `settings` name, with what the `environment` tells every engine. `configs` is what engines read of
configs and say about them, `kit` is what several engines need.
"""
