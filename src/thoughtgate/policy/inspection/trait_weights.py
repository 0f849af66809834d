"""The weights of traits and of pairs of traits; written by ``tools/fit_trait_weights.py``."""

from typing import Final

BIAS: Final = -2.94
"""Weight of a sentence without traits."""

_TABLE: Final = {
    "about": "=-1.94, address=0.61, ask=0.61, before=0.26, every=0.47, first=-0.42, forced=0.08, give=0.61, harm=-0.1, identifier=-0.13, in parameter=-0.33, known personal=0.08, no=0.48, not give=0.52, office=-0.26, others=0.22, own parameter=-0.22, returns=0.12, secret=-0.52, silent=-0.61, take=-0.25, their=-0.54, thing=-0.15, trigger=0.32",
    "address": "=1.1, before=0.17, duty=0.94, every=0.78, excuse=0.47, first=1.19, give=1.18, harm=1.41, identifier=0.4, in parameter=-1.1, in value=0.68, known give=0.61, model=-0.13, obey=0.11, others=0.2, own name=-0.37, own parameter=-0.4, quoted=0.21, returns=0.31, say=0.45, secret=0.17, take=-0.42, talk=0.51, thing=0.09, trigger=0.47, use=0.72, user=0.3, you=0.4",
    "ask": "=-1, before=0.34, care=-0.11, consent=0.09, divert=-0.4, duty=-0.31, every=0.25, excuse=-0.3, give=-0.15, in parameter=-0.34, no=0.13, param=-0.28, returns=-0.08, say=0.53, take=-0.31, their=-0.45, trigger=-0.73, use=0.32, user=-0.56, you=-0.4",
    "before": "=-0.26, care=-0.39, consent=-0.9, divert=0.26, duty=0.08, excuse=0.12, first=0.47, forced=0.1, form=-0.09, give=0.82, harm=0.23, identifier=-0.22, in parameter=-0.42, in text=-0.33, in value=0.12, known obey=-0.1, known take=0.24, known use=0.38, lasting=0.08, model=0.6, no=-0.41, not give=-0.17, not say=-0.22, not take=0.4, not use=-0.27, obey=0.28, office=0.48, others=-0.16, own parameter=0.65, personal=1.23, returns=0.55, say=0.1, secret=0.79, silent=0.57, take=0.18, talk=0.52, their=0.23, thing=0.42, user=0.12, you=0.08",
    "care": "=-1.75, consent=-0.61, discredit=0.33, divert=0.3, duty=-0.13, give=-0.09, identifier=0.37, in text=-0.57, no=-0.38, not give=-0.28, not use=0.13, others=0.65, personal=0.15, secret=-0.32, talk=-0.44, their=-0.28, thing=-0.22, user=-0.8, you=-0.29",
    "consent": "=1.14, duty=0.45, every=0.91, first=-0.48, form=0.35, harm=0.62, in parameter=-0.52, in value=1.01, known use=0.2, model=0.89, no=0.97, not use=-0.8, obey=-0.12, office=0.68, quoted=-0.39, rank=-0.27, returns=-0.11, say=-0.28, self=0.09, silent=-0.16, take=-0.22, talk=0.19, their=-0.45, thing=-0.13, trigger=0.2, user=-0.86, you=0.64",
    "discredit": "=1.15, divert=-0.18, form=-0.1, identifier=0.52, in parameter=-0.41, in text=1.32, no=0.43, others=0.52, quoted=-0.1, returns=0.15, their=0.4, thing=-0.11, trigger=0.25, use=-0.22",
    "divert": "=-0.36, duty=0.82, every=0.47, forced=-0.42, harm=0.25, identifier=-0.28, in parameter=-0.31, in text=0.09, known take=-0.11, office=0.24, others=0.56, own name=0.2, own parameter=-0.08, personal=0.7, returns=0.44, say=-0.42, take=0.15, talk=-0.17, thing=0.75, use=-0.29, user=-0.14, you=0.21",
    "duty": "=0.21, first=0.15, forced=0.24, form=0.42, harm=0.29, identifier=0.15, in parameter=-0.87, in text=0.1, known give=0.33, known personal=0.11, known thing=0.13, model=0.91, not give=0.21, not take=-0.16, not use=-0.14, obey=0.15, office=0.11, others=0.42, own name=0.15, own parameter=-0.39, param=-0.38, personal=-0.13, please=0.11, quoted=-0.4, rank=0.9, returns=0.34, say=0.77, secret=0.33, silent=-0.38, take=0.18, talk=0.24, thing=-0.1, use=0.18, user=0.12, you=-0.5",
    "every": "=0.52, first=-0.66, forced=0.24, give=0.6, harm=0.11, identifier=2.02, in output=0.26, in parameter=1.37, in value=0.08, known give=0.49, known personal=0.12, known take=-0.3, known use=0.59, lasting=-0.25, model=0.75, no=-0.59, not give=-0.55, obey=0.44, office=0.14, others=0.48, own name=0.26, own parameter=0.14, param=0.84, quoted=1.25, say=1.02, secret=1.45, self=0.37, silent=-0.09, take=-0.37, talk=0.73, their=-0.11, thing=0.56, trigger=-0.88, use=-0.11, user=-0.22, you=1.03",
    "excuse": "=0.66, first=-0.17, form=-0.2, give=0.08, in parameter=1.21, in text=-0.29, known thing=0.19, known use=-0.2, lasting=-0.13, no=0.21, office=0.29, own parameter=0.2, param=-0.24, quoted=-0.16, returns=-0.3, secret=0.52, take=-0.24, talk=-0.47, their=0.16, thing=-0.12, trigger=0.1, use=-0.21, user=0.12, you=-0.16",
    "first": "=0.65, give=-0.6, harm=-1, identifier=1.25, lasting=-0.24, model=-1.27, no=-0.3, obey=-0.8, office=-0.66, param=-0.24, personal=-1, rank=-0.19, returns=-0.5, say=-0.4, secret=-0.75, self=0.23, take=-0.58, talk=-1.18, their=-0.91, thing=-1.05, trigger=1.06, user=-0.8, you=-0.48",
    "forced": "=-0.23, identifier=0.24, in parameter=-0.1, model=-0.17, no=0.09, others=-0.13, own parameter=0.15, say=-0.31, secret=0.28, take=0.14, trigger=-0.31",
    "form": "=-1.73, give=-0.39, in text=-0.6, in value=0.42, known take=-0.16, not say=-0.26, not use=-0.15, obey=-0.41, own parameter=0.13, param=-0.25, please=0.39, rank=-0.21, silent=0.41, talk=0.14, thing=-0.79",
    "give": "=-0.44, harm=-0.68, identifier=0.34, in value=0.72, known personal=0.23, known thing=0.98, known use=0.28, known user=-0.16, model=0.43, no=0.16, not say=0.21, not take=-0.11, not use=0.12, obey=-0.09, others=0.09, own parameter=0.98, personal=1.13, please=0.73, returns=-0.25, secret=1.09, self=-0.61, silent=0.56, take=0.79, talk=0.13, their=-0.12, thing=0.09, user=0.93, you=0.23",
    "harm": "=0.61, in parameter=-0.19, in text=0.5, model=0.7, office=0.5, own parameter=-0.25, silent=0.09, talk=0.23, their=-0.22, thing=-0.33, trigger=0.16, use=0.22",
    "identifier": "in output=-0.13, in text=-0.51, known give=0.21, known take=-0.41, known thing=0.29, known use=-0.15, model=0.17, no=0.37, not use=-0.17, obey=-0.19, office=0.23, own name=-0.14, own parameter=-0.11, please=-0.23, quoted=0.5, returns=-1, say=0.39, secret=1.06, take=0.38, talk=-0.3, their=-0.23, thing=-0.33, trigger=0.99, use=0.29, user=0.21",
    "in label": "=-1.65, model=1.2, use=0.48",
    "in output": "=-2.41, personal=-0.27, say=0.34, silent=-0.25, thing=0.28, trigger=-0.14, user=0.33",
    "in parameter": "=-1.64, known model=-0.17, known obey=-0.13, known personal=-0.14, known secret=-0.1, known take=-0.08, known talk=-0.13, known use=-0.25, model=-0.32, not give=-0.21, not use=0.53, obey=-0.9, others=-0.23, own parameter=-0.14, param=-0.13, personal=0.15, please=0.24, say=-0.4, secret=0.5, self=-0.41, take=0.52, talk=1.55, their=1.18, thing=0.22, trigger=-0.2, use=-0.56, user=0.21, you=0.96",
    "in text": "=0.75, known harm=-0.23, known model=-0.28, known obey=-0.31, known office=-0.19, known say=-0.09, known secret=-0.09, known thing=-0.33, known user=-0.56, lasting=0.52, model=0.68, no=-0.11, not harm=-0.15, not obey=-0.12, not say=0.11, not take=0.12, not use=-0.19, obey=1.85, office=0.21, others=0.19, own name=-0.25, own parameter=-1.16, please=0.13, quoted=-0.66, returns=-0.16, self=1.03, silent=0.57, their=0.33, use=-0.16, user=0.25, you=-0.16",
    "in value": "=-0.87, no=0.33, obey=-0.18, office=0.71, own parameter=2.23, secret=1.03, thing=0.81, use=0.77",
    "known give": "=-0.31, model=0.23, own parameter=0.23, param=-0.08, secret=0.1, take=0.31, talk=0.31, thing=0.09, trigger=0.22, use=0.32",
    "known harm": "=-0.66",
    "known model": "=-1.1, returns=-0.12, say=-0.1, trigger=-0.14, user=-0.13, you=-0.11",
    "known obey": "=-1.02, no=-0.2",
    "known office": "=-0.42",
    "known personal": "=-0.57, no=0.16, others=0.44, own parameter=-0.26, returns=-0.12, take=0.2, their=-0.08, use=0.17, user=-0.32",
    "known say": "=-0.27",
    "known secret": "=-0.49",
    "known take": "=-0.64, known thing=0.21, model=0.36, no=-0.14, returns=-0.17, secret=0.39, their=0.18, trigger=-0.3, you=-0.36",
    "known talk": "=-0.39",
    "known thing": "=-1.98, model=0.44, no=-0.13, own parameter=0.11, personal=0.3, say=0.1, secret=0.2, silent=-0.32, take=0.24, their=0.15, use=0.09, you=-0.14",
    "known use": "=-1.27, no=-0.17, obey=0.29, office=-0.16, param=0.21, personal=-0.17, quoted=-0.11, say=-0.11, take=-0.12, thing=0.22, trigger=-0.39, user=-0.33",
    "known user": "=-1.18, no=-0.16, their=-0.28, trigger=-0.12, use=-0.11",
    "lasting": "=0.25, no=0.36, office=0.29, take=0.26, talk=-0.46, thing=0.36, trigger=-0.12, user=-0.61",
    "model": "=0.29, office=-0.52, others=0.19, param=-0.13, personal=0.33, quoted=0.25, returns=1.07, say=0.4, secret=0.3, silent=0.14, their=0.25, thing=0.14, trigger=0.48, use=0.14, user=-0.47",
    "no": "=-0.67, not harm=-0.15, not obey=-0.11, not take=0.12, obey=-0.21, office=0.33, others=0.53, own parameter=-0.43, personal=-0.45, please=-0.34, quoted=0.38, rank=-0.28, returns=-0.47, say=-0.43, secret=-0.58, self=0.21, silent=-0.23, take=0.52, talk=0.24, their=-0.22, use=0.4, user=1.63, you=-0.18",
    "not give": "=-0.21, secret=-0.29, silent=-0.47, trigger=-0.26, use=0.54, user=0.47, you=-0.25",
    "not harm": "=-0.32",
    "not obey": "=-0.26",
    "not say": "=0.18, silent=0.14, trigger=0.11, user=-0.21, you=-0.19",
    "not take": "=0.28, use=-0.18, you=0.13",
    "not use": "=0.27, others=0.44, quoted=0.1, returns=-0.26, talk=0.46, their=-0.12, thing=0.13, use=-0.24, user=-0.15",
    "obey": "=0.83, param=0.19, personal=0.22, returns=0.2, say=0.48, take=0.12, talk=0.29, their=0.12, trigger=-0.2, use=-0.73, user=0.5, you=-0.14",
    "office": "=0.09, others=0.2, personal=-0.1, secret=0.1, self=0.4, talk=-0.34, thing=0.31, trigger=-0.29, use=-0.37, user=-0.09, you=0.97",
    "others": "=0.99, own name=0.49, quoted=0.2, rank=0.2, returns=0.71, secret=-0.15, talk=0.11, their=0.43, thing=0.47, use=0.6, user=0.18, you=0.17",
    "own name": "=-0.93, own parameter=-0.15, quoted=-0.23, returns=0.32, use=0.61",
    "own parameter": "personal=0.89, please=0.64, quoted=-0.26, returns=0.74, secret=0.43, silent=0.31, take=1.04, their=0.21, thing=0.51, trigger=0.24, use=-0.32, user=-0.17, you=0.89",
    "param": "=-0.45, personal=-0.08, please=0.53, quoted=-0.16, say=0.25, secret=0.51, silent=0.19, take=0.15, trigger=-0.09, user=-0.19, you=0.13",
    "personal": "=-0.4, quoted=-0.13, returns=0.76, secret=-0.66, take=0.3, talk=-0.26, trigger=1.73, use=0.25, user=0.24, you=0.47",
    "please": "=0.76, secret=0.17, silent=0.33, take=0.21, talk=0.27, thing=0.1, user=-0.18",
    "quoted": "=-1.36, returns=-0.21, say=1.04, silent=-0.24, take=0.09, talk=0.67, their=0.3, user=0.77, you=-0.11",
    "rank": "=0.37, returns=0.51, take=0.29, thing=-0.39, trigger=-0.27, use=0.2, user=0.32",
    "returns": "=-1.05, secret=0.19, self=0.13, silent=0.14, take=-0.08, their=0.43, thing=0.6, trigger=0.52, user=-0.33, you=-0.45",
    "say": "=-0.11, silent=0.3, take=-0.16, talk=-0.11, thing=0.66, trigger=-0.22, use=0.61, you=0.37",
    "secret": "=1.83, self=0.39, take=0.78, talk=-0.31, their=-0.14, thing=2.13, trigger=0.51, use=0.33, user=-0.4",
    "self": "=2.75, talk=0.09, their=0.09, trigger=-0.41, use=-0.17, you=0.77",
    "silent": "=2.26, take=0.54, talk=-0.13, thing=0.7, trigger=0.15, use=0.21, user=0.09, you=0.23",
    "take": "talk=-0.35, their=0.25, thing=1.44, trigger=0.35, use=-0.27, user=-0.12",
    "talk": "=1.02, their=-0.17, thing=0.45, trigger=0.61, use=-0.19, user=0.61, you=0.37",
    "their": "=1.5, thing=0.32, trigger=-1, use=-0.13, user=0.19",
    "thing": "trigger=0.32, user=0.26, you=0.62",
    "trigger": "you=-0.89",
    "use": "=-0.49, user=-0.2, you=-0.44",
    "user": "=0.98",
    "you": "=0.65",
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
