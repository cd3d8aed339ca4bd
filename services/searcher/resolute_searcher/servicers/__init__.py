"""The RPCs of the searcher service.

They convert requests to values, call the domain, and convert results to responses. Each group of calls has
its module; `searcher` combines them.
"""
