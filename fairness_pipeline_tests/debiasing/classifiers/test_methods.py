"""Methods for classifiers: weights and gradients by hand, and a cue that Debiased-TC must unlearn."""

from pathlib import Path

import numpy as np
import pytest
import torch

from fairness_pipeline.debiasing.classifiers import registry
from fairness_pipeline.debiasing.classifiers.debiased_tc import (
    Game,
    classifier_gradients,
    corrector_gradient,
    reversal,
)
from fairness_pipeline.debiasing.classifiers.instance_weighting import weights
from fairness_pipeline.debiasing.classifiers.registry import METHODS, Task, Texts
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.classifiers import registry as classifiers
from fairness_pipeline.models.classifiers.saliency import CorrectedNetwork
from fairness_pipeline.models.classifiers.specification import ClassifierSpecification
from fairness_pipeline.models.classifiers.texts import LabelledTexts
from fairness_pipeline.project.project import method_named
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.models.classifiers.tiny import NETWORK, encoder, network, told_by_a_word


def test_instance_weights_by_hand() -> None:
    """4:1 in group a, 1:4 in group b: 0.5 / 0.8 of the commoner label, 0.5 / 0.2 of the rarer."""
    labels = np.array([1] * 400 + [0] * 100 + [1] * 100 + [0] * 400)
    groups = np.repeat([0, 1], 500)
    instance_weights = weights(labels, groups, seed=1)
    assert instance_weights[:400] == pytest.approx(0.625, rel=0.03) and instance_weights[400:500] == pytest.approx(
        2.5, rel=0.06
    )
    assert instance_weights[500:600] == pytest.approx(2.5, rel=0.06) and instance_weights[600:] == pytest.approx(
        0.625, rel=0.03
    )


def test_the_reversal_layers_gradient_is_the_negative() -> None:
    values = torch.tensor([1.0, -2.0], requires_grad=True)
    reversed_values = reversal(values, 1.0)
    assert torch.equal(reversed_values, values)
    (reversed_values * torch.tensor([3.0, 5.0])).sum().backward()
    assert values.grad.tolist() == [-3.0, -5.0]


def game(architecture: str = "cnn", double: bool = False) -> tuple[Game, tuple, tuple]:
    """A small game, with a batch of validation texts and one of training texts."""
    torch.manual_seed(3)
    model = Game(CorrectedNetwork(network(architecture, 12), 4), network(architecture, 12), 1.0)
    draw = np.random.default_rng(3)
    pairs = []
    for _ in range(2):
        texts = LabelledTexts([draw.integers(4, 12, length) for length in (3, 5, 4)], np.array([0, 1, 1]))
        pairs.append((texts.batch(np.arange(3), torch.device("cpu")), torch.tensor([0, 1, 0])))
    return model.double() if double else model, pairs[0], pairs[1]


def test_corrector_weights_sum_to_one_over_the_unpadded_words() -> None:
    model, (batch, _), _ = game()
    shares = model.network.corrector(model.network.embed(batch.texts), batch.lengths)
    assert torch.allclose(shares.sum(1), torch.ones(3)) and (shares[0, 3:] == 0).all()


def test_theta_follows_the_labels_gradient_minus_the_groups() -> None:
    model, valid, train = game()
    theta, _, _ = model.split()
    gradients = corrector_gradient(model, valid, train, xi=0.0)
    batch, groups = valid
    corrected = model.network.corrected(model.network.embed(batch.texts), batch.lengths)
    label_loss = torch.nn.functional.cross_entropy(
        model.network.classifier.logits(corrected, batch.lengths), batch.goals
    )
    group_loss = torch.nn.functional.cross_entropy(model.adversary.logits(corrected, batch.lengths), groups)
    expected = torch.autograd.grad(label_loss - group_loss, list(theta.values()))
    assert all(
        torch.allclose(gradients[name], gradient, atol=1e-6) for name, gradient in zip(theta, expected, strict=True)
    )


def test_the_words_vectors_belong_to_the_classifier_of_labels() -> None:
    """Their gradient is that of L_Y alone; the adversary's weights have that of L_Z alone."""
    model, train, _ = game()
    _, label_part, group_part = model.split()
    gradients = classifier_gradients(model, train)
    losses = model(*train, turned=False)
    for loss, part in zip(losses, (label_part, group_part), strict=True):
        expected = torch.autograd.grad(loss, list(part.values()), retain_graph=True, allow_unused=True)
        for name, gradient in zip(part, expected, strict=True):
            assert (gradient is None and name not in gradients) or torch.allclose(gradients[name], gradient)
    assert (
        "network.classifier.encoder.embedding.weight" in gradients
        and "adversary.encoder.embedding.weight" not in gradients
    )


def test_second_order_with_no_step_is_first_order_and_else_as_finite_differences_say() -> None:
    """d/d theta of L_val(W - xi grad_W L_train(W, theta), theta), compared with small changes of single entries."""
    model, valid, train = game(double=True)
    theta, *parts = model.split()
    first = corrector_gradient(model, valid, train, xi=0.0)
    tiny = corrector_gradient(model, valid, train, xi=1e-12)
    assert all(torch.allclose(first[name], tiny[name], atol=1e-8) for name in theta)
    xi, step = 0.5, 1e-5
    exact = corrector_gradient(model, valid, train, xi=xi)
    before = {name: value.detach().clone() for name, value in model.named_parameters()}

    def objective(weight: str, index: int, change: float) -> float:
        """L_Y - L_Z on the validation batch after W's step."""
        with torch.no_grad():
            for name, value in model.named_parameters():
                value.copy_(before[name])
            theta[weight].view(-1)[index] += change
        losses = model(*train, turned=False)
        steps = []
        for loss, part in zip(losses, parts, strict=True):
            gradients = torch.autograd.grad(loss, list(part.values()), retain_graph=True, allow_unused=True)
            steps += zip(part.values(), gradients, strict=True)
        with torch.no_grad():
            for value, gradient in steps:
                if gradient is not None:
                    value -= xi * gradient
            losses = model(*valid, turned=False)
        return float(losses[0] - losses[1])

    name = "network.corrector.output.weight"
    for index in range(3):
        numeric = (objective(name, index, step) - objective(name, index, -step)) / (2 * step)
        direct = float(exact[name].view(-1)[index])
        assert direct == pytest.approx(numeric, rel=2e-3, abs=1e-6)


def task(folder: Path, method: str | None, architecture: str = "cnn", **changes) -> tuple[Task, Texts]:
    """A task with skewed training texts, and balanced test texts."""
    base = {"base": "x", "debiasing": method} if method else {}
    fields = {"architecture": architecture, "network": NETWORK, "seeds": 1, **base, **changes}
    fields["fitting"] = {"learning_rate": 0.01, "epochs": 8, "batch": 32, "checkpoint_seconds": 0.0}
    specification = ClassifierSpecification.model_validate(fields)
    texts, labels, groups = told_by_a_word(3200, 1)
    tokens = classifiers.new_tokens(specification, texts)
    draw = np.random.default_rng(5)
    encoded = Texts(tokens.encode(texts), labels, groups)

    def part(indices: np.ndarray) -> Texts:
        return Texts([encoded.words[i] for i in indices], labels[indices], groups[indices])

    common = labels != groups  # positive of a, negative of b
    for_training = np.arange(2000)
    skewed = for_training[common[:2000] | (draw.random(2000) < 0.25)]
    rest = np.setdiff1d(for_training, skewed)
    folder.mkdir(parents=True, exist_ok=True)
    training_task = Task(specification, tokens, part(skewed[:-200]), part(skewed[-200:]), part(rest), folder, 1)
    return training_task, part(np.arange(2000, 3200))


def gap(training_task: Task, tests: Texts) -> tuple[float, float]:
    """The DPD in points, and the accuracy."""
    from fairness_pipeline.models.classifiers.network import probabilities

    model = registry.load(training_task.classifier, training_task.folder, 1, training_task.tokens)
    predicted = probabilities(model, list(tests.words)) >= 0.5
    difference = predicted[tests.groups == 0].mean() - predicted[tests.groups == 1].mean()
    return 100 * float(difference), float(np.mean(predicted == tests.labels))


@pytest.mark.verify
def test_each_method_trains_and_leans_less_on_the_cue(tmp_path: Path) -> None:
    gaps = {}
    for method in (None, "data_aug", "ins_weigh", "debiased_tc"):
        training_task, tests = task(
            tmp_path / str(method),
            method,
            **({"settings": {"hidden": 8, "learning_rate": 0.01}} if method == "debiased_tc" else {}),
        )
        registry.train(training_task)
        gaps[method], accuracy = gap(training_task, tests)
        assert accuracy > 0.85
    assert gaps[None] > 6 and all(abs(gaps[method]) < gaps[None] / 2 for method in ("data_aug", "debiased_tc")), gaps
    assert len(training_task.train.words) < 2000 and len(training_task.added.words) > 300


def test_a_killed_debiased_tc_resumes_to_the_same_weights(tmp_path: Path) -> None:
    weights = []
    for name in ("whole", "cut"):
        training_task, _ = task(tmp_path / name, "debiased_tc", settings={"hidden": 4, "epochs": 2})

        def kill(done, total, note, name=name):
            if name == "cut" and done == 30:
                raise Killed

        try:
            registry.train(Task(**{**vars(training_task), "progress": kill}))
        except Killed:
            registry.train(training_task)
        model = registry.load(training_task.classifier, training_task.folder, 1, training_task.tokens)
        weights.append(torch.cat([value.flatten() for value in model.state_dict().values()]))
        assert sorted(path.name for path in (training_task.folder / "seed-1").iterdir()) == [
            "history.json",
            "model.safetensors",
        ]
    assert torch.equal(*weights)


def test_an_encoder_takes_a_corrector_too(tmp_path: Path) -> None:
    name = encoder(tmp_path / "bert", ["good", "bad", "new", "yes", "yup", "the"])
    training_task, tests = task(
        tmp_path / "made", "debiased_tc", "encoder", network=None, encoder={"name": name, "longest": 16},
        settings={"hidden": 4, "epochs": 1},
    )  # fmt: skip
    small = Task(
        **{
            **vars(training_task),
            "train": Texts(
                training_task.train.words[:96], training_task.train.labels[:96], training_task.train.groups[:96]
            ),
        }
    )
    (history,) = registry.train(small)
    assert len(history) == 1
    gap(small, tests)  # the trained encoder is read again, and predicts


def test_unknown_methods_are_named(tmp_path: Path) -> None:
    with pytest.raises(FairnessError, match=f"x.yaml: debiasing: expected one of {', '.join(METHODS)}"):
        method_named(METHODS, "magic", Path("x.yaml"))


def test_a_loss_that_is_no_number_is_refused(tmp_path: Path) -> None:
    training_task, _ = task(tmp_path / "wild", "debiased_tc", settings={"hidden": 4})
    wild = training_task.classifier.model_copy(
        update={"fitting": training_task.classifier.fitting.model_copy(update={"learning_rate": 1e30})}
    )
    with pytest.raises(FairnessError, match=r"the gradient of the training loss is (nan|inf).*lower the learning rate"):
        registry.train(Task(**{**vars(training_task), "classifier": wild}))
