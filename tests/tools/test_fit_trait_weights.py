"""The tool that fits the weights of traits."""

from tools.fit_trait_weights import bag_of, features, fit, render


def test_features_are_traits_and_their_pairs() -> None:
    assert features({"give", "address"}) == ("address", "give", "address + give")


def test_what_only_attacks_have_weighs_more() -> None:
    guilty, honest = features({"secret", "give"}), features({"form"})
    bias, weights = fit([[guilty, honest]] * 8, [[honest, honest]] * 8)
    assert weights["secret"] > 0
    assert bias + sum(weights.get(one, 0.0) for one in honest) < 0
    assert fit([[guilty, honest]] * 8, [[honest, honest]] * 8) == (bias, weights)


def test_the_written_module_has_the_weights() -> None:
    scope: dict[str, object] = {}
    exec(render(-1.5, {"give": 0.25, "give + secret": 1.0}), scope)
    assert scope["BIAS"] == -1.5
    assert scope["WEIGHTS"] == {"give": 0.25, "give + secret": 1.0}


def test_the_sentences_of_a_definition_are_a_bag() -> None:
    assert len(bag_of({"name": "add", "description": "Adds numbers. Returns the sum."})) == 2
