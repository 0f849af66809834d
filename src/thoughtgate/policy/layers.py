"""Layers: further policies that judge every call and can only make its verdict stricter.

The organisation's policy, a project's policy that the user has not trusted, and a changed policy
that nobody has accepted are layers.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.definitions import DefinitionPolicy
from thoughtgate.policy.inspection.content_policy import combined
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.visibility import Visibility

ORGANISATION: Final = "organisation"
PROJECT: Final = "project"
PROPOSED: Final = "proposed"
"""A changed policy that nobody has accepted, beside the one in force."""


def with_layers(policy: Policy, *layers: Layer) -> Policy:
    """Return a policy whose calls are also judged by these layers.

    The limits, exposures and content settings of a layer apply as if the policy itself had them.
    """
    if not layers:
        return policy
    shown = tuple(layer.policy.visibility for layer in layers)
    limits = [
        replace(limit, id=f"{layer.name}:{limit.id}")
        for layer in layers
        for limit in layer.policy.limits
    ]
    enforces = any(layer.prevails and layer.policy.profile == PRODUCTION for layer in layers)
    versions = [policy.version, *(f"{layer.name} {layer.policy.version}" for layer in layers)]
    return replace(
        policy,
        version=sha256("\n".join(versions).encode()).hexdigest()[:16],
        profile=PRODUCTION if enforces else policy.profile,
        visibility=Visibility(policy.visibility.servers, (*policy.visibility.narrowed_by, *shown)),
        definitions=DefinitionPolicy(
            policy.definitions.modes,
            policy.definitions.silences,
            (*policy.definitions.layers, *(layer.policy.definitions for layer in layers)),
        ),
        limits=(*policy.limits, *limits),
        workflows=policy.workflows.union(*(layer.workflows.values() for layer in layers)),
        contents=combined([policy.contents, *(layer.policy.contents for layer in layers)]),
        layers=(*policy.layers, *layers),
    )


def with_proposed(policy: Policy, proposed: Policy) -> Policy:
    """Return a policy whose calls are also judged by a changed one that nobody has accepted.

    Masking, workflows and profile stay those of the policy in force; a workflow that it does not
    have is replaced by its default one.
    """
    # Its layers become layers of the policy in force, each with a name of its own on the record.
    alone = replace(proposed, layers=())
    workflows = {name: name for name in proposed.workflows & policy.workflows}
    further = [
        replace(layer, name=f"{PROPOSED} {layer.name}", prevails=False) for layer in proposed.layers
    ]
    return with_layers(policy, Layer(PROPOSED, alone, workflows), *further)
