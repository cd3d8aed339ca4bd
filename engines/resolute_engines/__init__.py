"""Engines, which run the containers or jobs of trials on their pools of machines.

Every engine implements `protocol`. Each built-in engine is a subpackage; `plugins` opens it by the type in
the `settings`, with the parameters of `environment`. `configs` reads and checks the parts of configs that
engines use. `kit` has the parts that several engines share.
"""
