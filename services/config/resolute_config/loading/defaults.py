"""Defaults: those that are merged, and those that differ for each experiment, its name and its seed."""

from __future__ import annotations

import random as _random
from typing import Any

from resolute_config.sections.log_policies import DEFAULT_LOG_POLICIES

SEEDS = 2**31
"""Seeds that are drawn are below this number."""

_ADVERBS = """
barely boldly briskly calmly clearly deftly eagerly early evenly fairly firmly fondly freely freshly
gently gladly gravely keenly kindly lightly loosely mainly merely mildly mostly nearly neatly newly nicely
oddly plainly purely quickly quietly rarely really richly safely slowly softly surely truly vastly warmly
wholly wisely
"""  # a list would take a line a word
_ADJECTIVES = """
able agile amber ample apt bold brave brief bright brisk calm civil clear clever cosy crisp dapper eager
early fabled fair famous fine firm fleet fond fresh frank gentle glad golden grand green happy hardy
humble ideal jolly just keen kind lively loyal lucid lucky mellow merry mighty modest neat nimble noble
placid polite prime proud pure quick quiet rapid ready robust sage sharp silent simple smart smooth solid
sound spry steady still stout sunny sure swift tidy upbeat valid vivid warm wise witty worthy young
"""  # a list would take a line a word
_ANIMALS = """
adder alpaca badger beaver bison bobcat bunting buzzard caiman camel caracal civet condor coot corgi
cougar coyote crane cricket curlew dingo dolphin dove dunlin eagle egret eider elk falcon ferret finch
flamingo fox gannet gazelle gecko gibbon goose grouse gull hare hawk heron hornet ibex ibis iguana impala
jackal jaguar jay kestrel kite koala lapwing lark lemur leopard linnet llama lynx macaw magpie marmot
marten merlin mole moose newt ocelot oriole osprey otter owl oxen panda parrot pelican pigeon pika plover
puffin puma quail rabbit raven robin salmon seal shrike skua snipe sparrow stork swallow swan tapir tern
thrush toad trout turtle viper vole walrus weasel whale wolf wombat wren yak zebra
"""  # a list would take a line a word


def lowest_layer() -> dict[str, Any]:
    """What is below every layer and is merged with it, not just replaced by it."""
    return {"log_policies": [dict(policy) for policy in DEFAULT_LOG_POLICIES]}


def pet_name(random: _random.Random) -> str:
    """Draw a name of three words, such as ``quietly-brave-heron``."""
    return "-".join(random.choice(words.split()) for words in (_ADVERBS, _ADJECTIVES, _ANIMALS))


def with_own_defaults(document: dict[str, Any], random: _random.Random) -> dict[str, Any]:
    """Give the merged document a name and a seed where it has none.

    Both are always drawn, the name first, so that equal sources of randomness give equal seeds whether or not
    the user chose a name.
    """
    name = f"Experiment ({pet_name(random)})"
    seed = random.randrange(SEEDS)
    filled = dict(document)
    if filled.get("name") is None:
        filled["name"] = name
    section = filled.get("reproducibility")
    if section is None:
        section = {}
    if isinstance(section, dict) and section.get("experiment_seed") is None:
        filled["reproducibility"] = {**section, "experiment_seed": seed}
    return filled
