"""Layers: further policies that are asked about every call and can only make it stricter.

The organisation's policy, a project's policy that the user has not trusted, and the policy before
a change that nobody has accepted are layers.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.visibility import Visibility

ORGANISATION: Final = "organisation"
PROJECT: Final = "project"
PREVIOUS: Final = "previous"


def with_layers(policy: Policy, *layers: Layer) -> Policy:
    """Return a policy that also asks these layers about every call.

    The limits and exposures of a layer apply as if the policy itself had them.
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
        limits=(*policy.limits, *limits),
        workflows=policy.workflows.union(*(layer.workflows.values() for layer in layers)),
        layers=(*policy.layers, *layers),
    )
