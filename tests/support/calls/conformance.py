"""Calls that end alike, however they are made: clients, proxies and the gateway are held to it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from faults.fuzz.bases import Bases
from faults.fuzz.world import Caller, World
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from support.calls.contract_methods import methods, path
from support.calls.outcomes import Outcome
from support.calls.ways import ByGrpc, Way

from resolute_serving.auth.policy.permissions import PERMISSIONS


def token_for(caller: Caller, world: World, method: MethodDescriptor) -> str:
    """A token of a caller that the table lets through."""
    rule = PERMISSIONS[path(method)]
    if rule.user:
        return caller.admin
    return caller.trial(world.run) if rule.trial is not None else caller.service


@dataclass
class Comparison:
    """What came of calls that were made in several ways."""

    ended: dict[str, str] = field(default_factory=dict)
    """How each call ended without a detour, by its name."""
    made: Counter[str] = field(default_factory=Counter)
    """The calls that were compared, by the way."""
    wrong: list[str] = field(default_factory=list)
    """What ended otherwise elsewhere."""

    def check(self, ways: Mapping[str, Way]) -> None:
        """Fails unless every call of the contract was made by every way that can make it, and ended alike."""
        calls = list(methods())
        streams = sum(one.server_streaming for one in calls)
        uploads = sum(one.client_streaming for one in calls)
        answered_calls = list(self.ended.values()).count("ok")
        by = ", ".join(f"{count} by {name}" for name, count in self.made.items())
        print(
            f"{len(calls)} calls ({streams} with streams of answers, {uploads} with streams of requests), "
            f"each with its token and without: {by}; {answered_calls} have an answer"
        )
        assert not self.wrong, "\n".join(self.wrong)
        assert set(self.ended) == {one.full_name for one in calls}
        assert self.made == {
            name: len(calls) if way.streams_requests else len(calls) - uploads for name, way in ways.items()
        }


async def compare(caller: Caller, world: World, ways: Mapping[str, Way]) -> Comparison:
    """Makes each call directly, in each of the ways, and directly again; then the same without a token.

    Args:
        caller: Has tokens, and a channel to the services.
        world: What requests name.
        ways: Other ways to make them, by name.
    """
    comparison = Comparison()
    directly = ByGrpc(caller.channel)
    # Streams last: by then there is something to follow.
    for method in sorted(methods(), key=lambda one: one.server_streaming):
        fitting = {
            name: way for name, way in ways.items() if way.streams_requests or not method.client_streaming
        }
        request = Bases(world, random.Random(method.full_name)).request(method)
        if method.GetOptions().idempotency_level != MethodOptions.NO_SIDE_EFFECTS:
            # After it, repeating the call changes nothing any more, or fails each time.
            await directly(method, request, token_for(caller, world, method))
        for token in (token_for(caller, world, method), ""):
            ended = await _compared(
                comparison, directly, fitting, method=method, request=request, token=token
            )
            if token:
                comparison.ended[method.full_name] = ended.code
        comparison.made.update(list(fitting))
    return comparison


async def _compared(
    comparison: Comparison,
    directly: Way,
    ways: Mapping[str, Way],
    *,
    method: MethodDescriptor,
    request: Message,
    token: str,
) -> Outcome:
    """Makes one call in all the ways, and returns how it ended directly."""
    before = await directly(method, request, token)
    outcomes = {name: await way(method, request, token) for name, way in ways.items()}
    after = await directly(method, request, token)
    for name, outcome in outcomes.items():
        if not outcome.agrees(before, after):
            comparison.wrong.append(f"{method.full_name} by {name}: {outcome}\n  not {before}\n  nor {after}")
    return before
