"""The weights of traits and of pairs of traits; written by ``tools/fit_trait_weights.py``."""

from typing import Final

BIAS: Final = -3.65
"""Weight of a sentence without traits."""

_TABLE: Final = {
    "about": "=-0.1, address=0.22, every=0.13, first=-0.21, known thing=-0.12, not give=-0.11, obey=0.37, others=0.34, own parameter=-0.16, secret=-0.39, self=-0.77, silent=-0.61, use=-0.36",
    "address": "=0.4, duty=1.11, every=0.81, excuse=0.56, first=1.14, give=1.16, harm=1.64, identifier=0.35, in parameter=-0.21, in value=0.81, known give=0.64, no=0.13, own parameter=-0.35, returns=0.32, say=0.75, self=-0.17, talk=0.34, then=0.87, trigger=0.2, use=0.33, user=0.24, whole=-0.22, you=0.45",
    "ask": "=-0.33, divert=-0.41, duty=-0.08, excuse=-0.17, in parameter=-0.21, returns=-0.34, say=0.25, trigger=-0.28, use=-0.28, user=-0.26",
    "before": "consent=-0.51, divert=0.33, first=0.36, forced=0.17, in value=0.16, lasting=0.1, not take=0.45, others=0.32, own parameter=0.2, personal=0.41, purpose=-0.25, returns=0.35, secret=0.38, self=-0.12, then=-0.49",
    "care": "=-1.47, consent=-0.25, divert=0.13, every=-0.1, others=0.27, secret=-0.25, self=-0.44, talk=-0.22, user=-0.24",
    "consent": "=0.87, duty=0.53, every=0.61, first=-0.3, harm=0.41, in parameter=-0.52, in value=0.74, model=1.26, no=0.64, not use=-0.64, obey=0.08, office=0.98, open=-0.82, please=0.18, quoted=-0.26, self=0.35, take=-0.23, their=-0.59, trigger=0.19, use=-0.36, whole=0.31, you=0.37",
    "discredit": "=1.08, divert=-0.21, identifier=0.44, in parameter=-0.31, in text=1.43, no=0.31, others=0.25, returns=-0.12, trigger=0.14, you=-0.42",
    "divert": "duty=0.55, forced=-0.39, harm=0.2, identifier=-0.22, known give=0.29, office=0.2, open=-0.36, others=0.22, personal=0.79, say=-0.5, then=0.23, thing=0.43, you=0.52",
    "duty": "first=0.19, forced=0.76, give=0.29, harm=0.29, model=0.1, not give=0.25, not use=-0.2, obey=0.11, office=0.11, others=0.14, own name=0.12, please=0.13, quoted=-0.24, rank=0.95, say=0.54, secret=0.23, talk=0.24, then=0.36",
    "every": "=0.78, forced=0.41, give=0.57, identifier=1.41, in value=0.39, known give=0.41, known personal=0.39, model=0.48, not give=-0.49, others=0.27, please=0.44, purpose=-0.34, say=0.29, secret=1.37, self=0.11, silent=-0.23, take=0.14, thing=0.86, whole=0.22",
    "excuse": "harm=0.12, in value=0.25, known thing=0.11, known use=-0.18, office=0.48, open=0.4, others=0.08, param=-0.47, secret=0.73, self=0.34, then=0.33, use=-0.16, user=0.14, you=-0.18",
    "first": "harm=-0.17, identifier=1.32, lasting=-0.17, model=-1.09, no=-0.21, office=-0.35, personal=-0.69, returns=-0.1, say=-0.2, talk=-0.4, their=-0.51, trigger=0.72, whole=-0.28, you=-0.57",
    "forced": "identifier=0.11, model=-0.1, others=-0.13, say=-0.31, secret=0.38, then=-0.21",
    "form": "=-0.49, in value=0.49, not say=-0.11, not use=-0.11, obey=-0.22, own name=-0.08, rank=-0.16, secret=-0.51, self=-0.67",
    "give": "harm=-0.24, in value=1, model=0.13, not give=0.18, not take=-0.12, obey=-0.21, others=0.23, personal=1.4, please=0.61, secret=0.46, self=-0.15, silent=0.41, take=0.23, then=0.2, user=0.52, whole=0.26",
    "harm": "=0.19, in text=0.61, model=0.54, office=0.34, own parameter=-0.1, quoted=-0.09, say=0.27, secret=0.18, self=-0.2, take=0.1, then=0.16",
    "identifier": "in value=0.85, known take=-0.23, known use=-0.12, model=-0.42, obey=0.21, office=0.27, open=0.12, say=0.22, secret=0.98, self=0.24, silent=-0.4, talk=-0.18, trigger=0.34, whole=0.53",
    "in label": "model=0.98",
    "in output": "=-0.15, model=0.38, silent=-0.2, user=0.13",
    "in parameter": "not use=0.16, obey=-0.5, open=-0.11, others=-0.17, silent=-0.36, talk=1.14, their=0.74, whole=0.28",
    "in text": "=0.66, known consent=0.19, known obey=-0.37, known user=-0.19, lasting=0.75, model=0.83, obey=2.11, office=0.6, please=0.09, rank=0.57, say=0.34, silent=0.7",
    "in value": "model=0.14, no=0.33, office=0.48, secret=1.13, self=0.36, take=0.85, then=0.62, thing=2.11, use=0.58, user=0.21",
    "known consent": "=0.5",
    "known give": "model=0.23, no=-0.28, open=-0.1, others=0.25, take=0.26, talk=0.52, trigger=0.09, use=0.09, you=0.25",
    "known model": "=-0.91, no=0.1",
    "known obey": "=-0.82, no=-0.25",
    "known personal": "others=0.17, own parameter=-0.21, take=0.39, then=0.25, user=0.09",
    "known secret": "model=-0.3, no=-0.21, user=0.55",
    "known self": "=-0.16",
    "known take": "=-0.15, model=0.16, secret=0.42, self=-0.27, whole=-0.09, you=-0.16",
    "known talk": "=-0.3",
    "known thing": "=-0.4, model=0.33, others=-0.13, own parameter=0.22, secret=0.12, silent=-0.38, take=0.11",
    "known use": "=-0.66, obey=-0.11, personal=-0.11, say=-0.14, take=-0.09, whole=0.24",
    "known user": "=-0.78, no=-0.19",
    "lasting": "=0.56, office=0.17, own name=0.13, personal=0.13, secret=0.34, talk=-0.28, their=-0.18, thing=0.27, user=-0.45",
    "model": "=0.42, obey=0.3, others=0.37, rank=0.27, returns=0.61, say=0.37, secret=0.18, self=-0.34, then=0.59, you=-0.1",
    "no": "obey=-0.41, open=-0.66, own parameter=0.1, rank=-0.11, returns=-0.14, secret=-0.22, their=0.12, user=1.05",
    "not give": "personal=-0.12, silent=-0.19, user=0.2, you=-0.15",
    "not harm": "=0.09",
    "not obey": "=-0.09",
    "not say": "open=-0.29, silent=0.16, then=-0.09, trigger=0.11",
    "not take": "=0.27",
    "not use": "others=0.3, returns=-0.27, talk=0.53, use=-0.09",
    "obey": "=0.44, param=-0.22, returns=-0.32, say=-0.33, self=-0.17, talk=0.22, thing=-0.18, trigger=-0.15, use=-0.51, whole=0.11, you=-0.34",
    "office": "others=0.11, own parameter=0.1, secret=0.09, self=0.69, silent=0.11, talk=-0.14, their=0.09, trigger=-0.22, use=-0.13, you=0.47",
    "open": "others=-0.14, own parameter=0.21, personal=0.17, rank=0.17, returns=-0.09, then=0.15, trigger=-0.18, whole=0.33, you=-0.24",
    "others": "=1.31, own name=0.58, personal=0.34, returns=0.85, silent=-0.19, talk=0.11, thing=0.29, use=0.28, whole=0.18, you=0.2",
    "own name": "=-0.13, own parameter=-0.14, returns=0.12, use=0.44, you=-0.16",
    "own parameter": "personal=0.77, please=0.47, silent=0.25, take=0.86, thing=0.16, user=0.24, you=0.19",
    "param": "please=0.19, secret=0.14, talk=-0.18, their=0.22",
    "personal": "self=-0.21, their=0.82, then=0.43, trigger=0.96, whole=0.25, you=0.22",
    "please": "=0.66, returns=0.32, silent=0.35, talk=0.57, whole=0.1",
    "purpose": "secret=0.17, thing=0.43",
    "quoted": "=-0.31, rank=-0.17, say=0.38, self=-0.21, silent=-0.41, user=0.11, you=-0.12",
    "rank": "=0.39, returns=0.09, self=0.22, take=-0.14, use=0.09, user=0.14",
    "returns": "=-0.26, talk=-0.13",
    "say": "silent=0.21, their=0.48, use=0.58, user=0.18",
    "secret": "=1.56, take=0.67, thing=1.94, whole=0.47, you=0.65",
    "self": "=2.52, take=-0.39, talk=0.09, their=-0.15, thing=-0.22, trigger=0.17, whole=0.68, you=1.12",
    "silent": "=1.75, their=-0.09, then=0.2, thing=0.48, trigger=0.17, use=0.37, whole=0.14",
    "take": "then=0.5, thing=0.66",
    "talk": "=1.07, then=0.14, thing=0.16, whole=0.92",
    "their": "=0.83, trigger=-0.33, you=-0.32",
    "then": "thing=0.27, user=1.43",
    "thing": "user=0.3",
    "user": "=0.57",
    "whole": "you=0.24",
}  # fmt: skip
"""Trait -> its own weight, and that of each pair with a later trait."""


def _weights() -> dict[str, float]:
    weights = {}
    for first, row in _TABLE.items():
        for pair in row.split(", "):
            second, _, weight = pair.partition("=")
            weights[f"{first} + {second}" if second else first] = float(weight)
    return weights


WEIGHTS: Final = _weights()
"""A trait, or two in alphabetical order joined by " + " -> weight."""
