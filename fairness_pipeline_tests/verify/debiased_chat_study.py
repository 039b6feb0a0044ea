"""Why is Debiased-Chat no better than its placebo? Variants of it, paired by seed, at equal perplexity.

    fairness-pipeline run --profile debiased_chat_study --select debiased_dialogue_models     # two hours of two cores
    python -m fairness_pipeline_tests.verify.debiased_chat_study

A gap closes wherever a model forgets what it answered to whom, and the more it forgets, the more it is perplexed. So a
variant is compared with its placebo where both are equally perplexed: each training's effects (the mean effect size of
all measures, at every fairness test) are interpolated over perplexity, and the mean distance of two trainings of one
seed is taken over the perplexities that both have passed. If these are a small part of what the variant passes
(`shared`), that says little: the variant had hardly moved. So both are also compared after as many iterations, over
the second half of the tests, with what that cost in perplexity beside it.
"""

import sys
from collections.abc import Callable

import numpy as np
from scipy import stats

from fairness_pipeline.project.project import Project
from fairness_pipeline.statistics.corrections import holm
from fairness_pipeline.workspace.lake import Lake

_Curve = tuple[list[float], list[float]]
PROFILE = "debiased_chat_study"
PLACEBO = "seq2seq-placebo"
OWN_PLACEBO = {"seq2seq-debiased_chat_deep": "seq2seq-placebo_deep"}
"""Placebos with the autoencoder of a variant, where profiles have them; the others have that of Debiased-Chat."""
_LEVELS = 50
_POWER = 0.8


def at_equal_perplexity(one: _Curve, other: _Curve) -> float | None:
    """The mean of the first training's effects minus the second's, over the perplexities that both have passed.

    Args:
        one: Perplexity and effect at every test.
        other: The same of the other training.

    Returns:
        None if they have none in common.
    """
    low, high = _common(one, other)
    if high <= low:
        return None
    levels = np.linspace(low, high, _LEVELS)
    return float(np.mean(_interpolated(*one, levels) - _interpolated(*other, levels)))


def shared(one: _Curve, other: _Curve) -> float:
    """The share of the first training's range of perplexities that the second has passed, too."""
    low, high = _common(one, other)
    return max(0.0, high - low) / (max(one[0]) - min(one[0]) or 1.0)


def after_as_many(one: _Curve, other: _Curve) -> float:
    """The first training's mean effect over the second half of its tests, minus the other's."""
    means = [float(np.mean(own[1][len(own[1]) // 2 :])) for own in (one, other)]
    return means[0] - means[1]


def _common(one: _Curve, other: _Curve) -> tuple[float, float]:
    return max(min(own[0]) for own in (one, other)), min(max(own[0]) for own in (one, other))


def _interpolated(perplexities: list[float], effects: list[float], levels: np.ndarray) -> np.ndarray:
    """Effects at perplexities. Tests of one perplexity, or nearly one, are averaged by where they stand in order."""
    order = np.argsort(perplexities, kind="stable")
    found: np.ndarray = np.interp(levels, np.asarray(perplexities)[order], np.asarray(effects)[order])
    return found


def figures(lake: Lake, project: Project, model: str) -> dict[int, dict[str, object]]:
    """The figures of each seed of a model that is trained."""
    part = project.parts["dialogue_fairness"]
    found = {}
    for number, key in enumerate(part.seeds_of({"dimension": "gender", "model": model}), start=1):
        card = lake.card("debiased_dialogue_models", key)
        game = (part.models[model].settings or {})["adversarial"]
        if (
            card and card.inputs["settings"]["model"]["settings"]["adversarial"] == game
        ):  # not one of a copied workspace
            shared = lake.card("disentanglement", part.shared_with(key))
            found[number] = {**(shared.figures if shared else {}), **card.figures}
    return found


def table(
    perplexity: str,
    compared: Callable[[_Curve, _Curve], float | None],
    arms: dict[str, dict[int, dict[str, object]]],
    placebos: dict[str, dict[int, dict[str, object]]],
) -> None:
    """Prints each variant beside its placebo."""
    rows, ps = [], []
    for name, own in arms.items():
        placebo = placebos.get(OWN_PLACEBO.get(name, PLACEBO), placebos[PLACEBO])
        pairs = [
            (_curve(own[seed], perplexity), _curve(placebo[seed], perplexity)) for seed in own.keys() & placebo.keys()
        ]
        found = [(compared(*two), two) for two in pairs]
        values = np.array([100 * v / two[0][1][0] for v, two in found if v is not None])
        if len(values) < 2:
            continue
        error = values.std(ddof=1) / np.sqrt(len(values))
        t = stats.t.ppf([0.975, _POWER], len(values) - 1)
        p = float(stats.ttest_1samp(values, 0).pvalue)
        ps.append(p)
        dearer = np.mean([100 * (two[0][0][-1] / two[1][0][-1] - 1) for two in pairs])
        part = 100 * np.mean([shared(*two) for two in pairs])
        rows.append(
            (name, len(values), values.mean(), t[0] * error, p, int((values < 0).sum()), t.sum() * error, part, dearer)
        )
    print(
        "| variant | seeds | gap minus the placebo's, % of the base's | 95% | p | p (Holm) | less in | detectable | "
        "shared, % | perplexity at the end, % above the placebo's |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (name, count, mean, reach, p, less, least, part, dearer), adjusted in zip(rows, holm(ps), strict=True):
        print(
            f"| {name} | {count} | {mean:+.1f} | {mean - reach:+.1f} to {mean + reach:+.1f} | {p:.3f} | {adjusted:.3f} | "
            f"{less} of {count} | {least:.1f} | {part:.0f} | {dearer:+.1f} |"
        )


def _curve(own: dict[str, object], perplexity: str) -> _Curve:
    return own[perplexity], own["effects_by_test"]  # type: ignore[return-value]


def diagnoses(arms: dict[str, dict[int, dict[str, object]]]) -> None:
    """Prints the means over seeds of what was looked at in every run."""
    shown: dict[str, Callable[[dict[str, object]], float]] = {
        "linear probe of f(s)": lambda own: float(own["accuracy_semantic"]),
        "three-layer probe of f(s)": lambda own: float(own["nonlinear_probe_semantic"]),
        "D2, as answers are": lambda own: float(np.mean(own["d2_accuracy_by_test"][1:])),
        "D2, words hidden": lambda own: float(np.mean(own["d2_accuracy_hidden_by_test"][1:])),
        "gradient of L_MLE": lambda own: float(np.median(own["gradient_likelihood_by_test"][1:])),
        "of L_D1": lambda own: float(np.median(own["gradient_d1_by_test"][1:])),
        "of L_D2": lambda own: float(np.median(own["gradient_d2_by_test"][1:])),
        "last effect, % of the base's": lambda own: 100 * float(own["effects_by_test"][-1]) / float(own["base_effect"]),
        "least effect of any test": lambda own: (
            100 * min(own["effects_by_test"][1:]) / float(own["base_effect"])  # type: ignore[index]
        ),
        "last perplexity of neutral dialogues, % more": lambda own: (
            100 * (float(own["neutral_perplexity_by_test"][-1]) / float(own["neutral_perplexity_by_test"][0]) - 1)
        ),
        "commonest answer, %": lambda own: 100 * float(own["commonest_by_test"][-1]),
    }
    print("| variant |", " | ".join(shown), "|")
    print("| --- |", " | ".join("---" for _ in shown), "|")
    for name, own in arms.items():
        if own:
            means = [np.mean([look(one) for one in own.values()]) for look in shown.values()]
            print(f"| {name} |", " | ".join(f"{value:.3g}" for value in means), "|")


def main() -> int:
    """Prints what the trainings show."""
    project = Project(sys.argv[1] if len(sys.argv) > 1 else PROFILE)
    lake = Lake(project.workspace)
    part = project.parts["dialogue_fairness"]
    names = [name for name, own in part.models.items() if own.debiasing and ".seed" not in name]
    found = {name: own for name in names if (own := figures(lake, project, name))}
    if PLACEBO not in found:
        print(
            f"nothing is trained yet: fairness-pipeline run --profile {project.name} --select debiased_dialogue_models"
        )
        return 1
    placebos = {name: own for name, own in found.items() if name in (PLACEBO, *OWN_PLACEBO.values())}
    arms = {name: own for name, own in found.items() if name not in placebos}
    for title, perplexity, compared in (
        ("At equal perplexity of dialogues that name nobody", "neutral_perplexity_by_test", at_equal_perplexity),
        ("At equal perplexity of all held-out dialogues", "perplexity_by_test", at_equal_perplexity),
        ("After as many iterations, over the second half of the tests", "perplexity_by_test", after_as_many),
    ):
        print(f"\n{title}:\n")
        table(perplexity, compared, arms, placebos)
    print("\nWhat was looked at, means over seeds (over tests):\n")
    diagnoses(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
