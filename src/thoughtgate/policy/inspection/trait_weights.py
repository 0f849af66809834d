"""The weights of traits and of pairs of traits; written by ``tools/fit_trait_weights.py``."""

from typing import Final

BIAS: Final = -3.65
"""Weight of a sentence without traits."""

_TABLE: Final = {
    "about": "=-0.2, address=0.19, every=0.17, first=-0.26, harm=-0.09, in output=0.11, not give=-0.09, obey=0.34, others=0.35, secret=-0.36, self=-0.83, silent=-0.7, their=-0.1, use=-0.26",
    "address": "=0.32, duty=1.11, every=0.94, excuse=0.31, first=1.19, form=-0.08, give=1.22, harm=1.65, identifier=0.34, in parameter=-0.17, in value=0.88, known give=0.57, no=0.25, others=0.12, own parameter=-0.32, param=0.12, returns=0.19, say=0.82, secret=-0.12, self=-0.14, talk=0.33, then=0.85, trigger=0.21, use=0.42, user=0.18, whole=-0.23, you=0.45",
    "ask": "=-0.36, divert=-0.4, duty=-0.1, excuse=-0.12, in parameter=-0.2, param=-0.11, returns=-0.13, say=0.3, trigger=-0.42, use=-0.22, user=-0.23, you=-0.09",
    "before": "consent=-0.38, divert=0.27, first=0.37, forced=0.18, in value=0.13, known give=0.11, not take=0.35, others=0.15, own parameter=0.29, personal=0.42, purpose=-0.22, returns=0.36, secret=0.69, self=-0.09, then=-0.4",
    "care": "=-1.45, consent=-0.36, discredit=0.14, every=-0.17, others=0.39, secret=-0.21, talk=-0.26, their=-0.09, thing=-0.17, user=-0.42, you=-0.09",
    "consent": "=0.81, duty=0.81, every=0.69, first=-0.3, give=0.13, harm=0.22, in parameter=-0.49, in value=0.77, model=0.9, no=0.76, not use=-0.57, office=1.09, open=-0.74, please=0.14, quoted=-0.29, self=0.12, take=-0.21, their=-0.3, trigger=0.28, use=-0.33, whole=0.3, you=0.36",
    "discredit": "=1.08, divert=-0.26, identifier=0.45, in parameter=-0.33, in text=1.48, no=0.24, others=0.37, trigger=0.12, you=-0.43",
    "divert": "duty=0.57, forced=-0.23, harm=0.22, identifier=-0.24, known give=0.25, office=0.16, open=-0.15, others=0.38, personal=0.84, say=-0.36, then=0.25, thing=0.44, you=0.5",
    "duty": "first=0.19, give=0.48, harm=0.48, known personal=0.1, model=0.16, not give=0.32, office=0.1, others=0.26, own name=0.11, quoted=-0.34, rank=1.02, say=0.71, secret=0.15, silent=-0.21, talk=0.2, then=0.33",
    "every": "=0.76, forced=0.32, give=0.66, identifier=1.49, in value=0.4, known give=0.56, model=0.58, not give=-0.49, others=0.38, please=0.47, purpose=-0.31, quoted=0.09, rank=0.26, say=0.33, secret=1.59, self=0.13, silent=-0.32, take=0.12, thing=0.83, whole=0.26",
    "excuse": "harm=0.11, in parameter=0.16, known use=-0.11, office=0.45, open=0.19, own parameter=0.1, param=-0.34, secret=0.59, self=0.36, talk=-0.1, then=0.2, use=-0.16, you=-0.17",
    "first": "=0.15, harm=-0.18, identifier=1.29, lasting=-0.14, model=-0.98, no=-0.21, office=-0.29, personal=-0.72, returns=-0.22, say=-0.24, talk=-0.61, their=-0.55, trigger=0.73, whole=-0.31, you=-0.49",
    "forced": "identifier=0.3, say=-0.13, secret=0.24, then=-0.16, user=0.18",
    "form": "=-0.48, in value=0.56, model=-0.15, not say=-0.15, obey=-0.32, rank=-0.16, secret=-0.48, self=-0.72",
    "give": "harm=-0.44, in output=0.09, in value=1.05, known secret=-0.25, known talk=0.14, known thing=0.11, model=0.18, not say=0.11, obey=-0.23, personal=1.33, please=0.68, secret=0.37, self=-0.43, silent=0.48, take=0.3, then=0.2, user=0.42, whole=0.18",
    "harm": "=0.26, in text=0.54, model=0.53, office=0.36, own parameter=-0.22, self=-0.17, then=0.29, you=0.12",
    "identifier": "in value=0.85, known take=-0.28, known use=-0.14, not use=-0.1, office=0.32, open=0.11, please=-0.13, say=0.17, secret=1.18, self=0.3, talk=-0.24, trigger=0.25, whole=0.52",
    "in label": "model=0.98",
    "in output": "=-0.17, silent=-0.2",
    "in parameter": "not use=0.2, obey=-0.57, open=-0.12, others=-0.16, silent=-0.31, talk=1.15, their=0.59, whole=0.34",
    "in text": "=0.71, known consent=0.17, known obey=-0.4, known user=-0.23, lasting=0.65, model=1.07, obey=2.44, office=0.66, please=0.25, rank=0.62, say=0.16, silent=0.75",
    "in value": "no=0.21, office=0.43, secret=1.13, self=0.41, take=0.83, thing=2.13, use=0.71, user=0.16",
    "known consent": "=0.46",
    "known give": "model=0.16, no=-0.3, others=0.22, param=-0.13, take=0.11, talk=0.38, then=0.29",
    "known model": "=-0.88, no=0.16",
    "known obey": "=-0.88, no=-0.28",
    "known office": "=-0.2",
    "known personal": "=-0.1, others=0.32, own parameter=-0.18, then=0.33",
    "known secret": "model=-0.31, no=-0.18, user=0.41",
    "known self": "=-0.59",
    "known take": "=-0.1, model=0.12, secret=0.41, self=-0.26, use=-0.08, whole=-0.12, you=-0.17",
    "known talk": "=-0.29",
    "known thing": "=-0.45, model=0.27, own parameter=0.09, secret=0.25, silent=-0.43",
    "known use": "=-0.58, office=-0.1, personal=-0.1, say=-0.09, user=-0.1, whole=0.38",
    "known user": "=-0.85, no=-0.24",
    "lasting": "=0.23, no=0.18, talk=-0.28, trigger=-0.13, user=-0.47",
    "model": "=0.29, obey=0.15, others=0.31, rank=0.2, returns=0.68, say=0.36, secret=0.36, self=-0.28, their=0.1, then=0.44",
    "no": "obey=-0.18, open=-0.52, own parameter=0.25, rank=-0.09, secret=-0.31, their=0.48, user=1.16, whole=-0.1",
    "not give": "personal=-0.11, secret=-0.21, silent=-0.35, user=0.23, you=-0.13",
    "not harm": "=-0.21",
    "not obey": "=-0.11",
    "not say": "=0.65, open=-0.32, then=-0.11",
    "not take": "=0.32",
    "not use": "open=-0.21, others=0.33, returns=-0.23, talk=0.55, use=-0.12",
    "obey": "=0.45, param=-0.15, self=-0.12, talk=0.18, thing=-0.11, trigger=-0.27, use=-0.65, user=0.38, whole=0.27, you=-0.2",
    "office": "others=0.1, self=0.74, silent=0.16, talk=-0.22, trigger=-0.26, you=0.63",
    "open": "=-0.22, own parameter=0.35, personal=0.16, rank=0.09, then=0.21, trigger=-0.19, whole=0.37",
    "others": "=1.25, own name=0.63, personal=0.37, quoted=0.11, rank=0.2, returns=0.83, talk=0.1, thing=0.15, use=0.36, user=-0.22, you=0.23",
    "own name": "=-0.19, returns=0.14, use=0.45, you=-0.18",
    "own parameter": "personal=0.84, please=0.52, say=0.12, silent=0.15, take=0.94, thing=0.16, user=0.09, you=0.23",
    "param": "please=0.11, secret=0.16, talk=-0.15, their=0.28",
    "personal": "secret=-0.22, self=-0.19, their=0.96, then=0.58, trigger=0.91, user=0.1, whole=0.27, you=0.25",
    "please": "=0.53, silent=0.31, take=0.1, whole=0.1",
    "purpose": "secret=0.22, thing=0.45",
    "quoted": "=-0.2, say=0.45, silent=-0.48, you=-0.11",
    "rank": "=0.42, returns=0.15",
    "returns": "=-0.28, talk=-0.21",
    "say": "silent=0.23, use=0.53, user=0.32, you=0.1",
    "secret": "=1.6, take=0.68, their=0.18, thing=1.87, trigger=0.12, whole=0.38, you=0.55",
    "self": "=2.54, take=-0.38, their=-0.18, thing=-0.16, trigger=0.14, user=0.13, whole=0.74, you=1.24",
    "silent": "=1.84, take=0.14, then=0.26, thing=0.52, trigger=0.18, use=0.34, user=0.13, whole=0.17",
    "take": "then=0.47, thing=0.8",
    "talk": "=1.07, then=0.21, thing=0.29, use=-0.14, whole=0.91",
    "their": "=0.86, then=0.2, trigger=-0.42, use=-0.09, you=-0.29",
    "then": "thing=0.11, user=1.31",
    "thing": "user=0.22",
    "user": "=0.68, whole=0.16",
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
