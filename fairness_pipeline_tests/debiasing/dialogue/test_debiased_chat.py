"""Algorithm 1 of Debiased-Chat."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from fairness_pipeline.debiasing.dialogue import disentanglement, maximum_likelihood
from fairness_pipeline.debiasing.dialogue.continued_training import Dialogues, State
from fairness_pipeline.debiasing.dialogue.debiased_chat import (
    AdversarialTraining,
    debias,
    features_of,
    gradient_penalty,
    sample_responses,
    temperature_at,
)
from fairness_pipeline.debiasing.dialogue.fairness_test import FairnessTest, Look
from fairness_pipeline.debiasing.dialogue.gendered_utterances import naming_words
from fairness_pipeline.debiasing.dialogue.registry import Task
from fairness_pipeline.debiasing.dialogue.settings import Adversarial, Continued
from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.measures.dialogue.measure import SignificanceSettings
from fairness_pipeline.models.batching import Batch, EncodedDialogues
from fairness_pipeline.models.dialogue import registry, seq2seq
from fairness_pipeline.models.dialogue.seq2seq import Seq2Seq
from fairness_pipeline.models.dialogue.specification import Seq2SeqSizes
from fairness_pipeline.models.dialogue.training import turns_of
from fairness_pipeline.models.training import perplexity
from fairness_pipeline.models.vocabulary import END, PAD, START, UNKNOWN, VOCABULARY, Vocabulary
from fairness_pipeline.statistics.equivalence import Margin
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.debiasing.dialogue.tasks import ADVERSARIAL, CONTINUED, DET, dialogues, task


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """A task whose autoencoder is trained."""
    folder = tmp_path_factory.mktemp("chat")
    settings = {"disentanglement": DET, "adversarial": ADVERSARIAL}
    prepared_task = task(folder, "debiased_chat", settings)
    (folder / "det").mkdir()
    disentanglement.train(dataclasses.replace(prepared_task, folder=folder / "det"))
    return dataclasses.replace(prepared_task, disentanglement=folder / "det")


def _into(prepared: Task, folder: Path, **changes: object) -> Task:
    folder.mkdir(exist_ok=True)
    return dataclasses.replace(prepared, folder=folder, **changes)


def _parts(prepared: Task, *, shuffled: bool = False, **settings: object) -> tuple[AdversarialTraining, Dialogues]:
    model, vocabulary = seq2seq.load(prepared.model, prepared.base)
    torch.manual_seed(0)
    training = AdversarialTraining(
        Adversarial(**{**ADVERSARIAL, **settings}),
        model,
        disentanglement.load(prepared),
        longest=8,
        naming=naming_words(prepared, vocabulary),
        shuffled=shuffled,
    )
    return training, Dialogues(prepared, vocabulary, 8, torch.device("cpu"))


def test_sampled_responses_are_words_that_a_model_may_write(prepared: Task) -> None:
    training, data = _parts(prepared)
    batch = data.gendered(np.random.default_rng(1), 16).dialogues
    sampled = sample_responses(training.model, batch, 8, temperature=1.0)
    assert sampled.words.shape[0] == 16
    assert sampled.lengths.min() >= 1
    assert sampled.lengths.max() == sampled.words.shape[1] <= batch.responses.shape[1] - 2
    assert sampled.soft is not None
    torch.testing.assert_close(sampled.soft.sum(dim=2), torch.ones(sampled.words.shape))
    for row, length in zip(sampled.words.tolist(), sampled.lengths.tolist(), strict=True):
        assert not {PAD, UNKNOWN, START, END} & set(row[:length])
        assert all(word == END for word in row[length : length + 1])


def test_sampling_follows_the_models_distribution() -> None:
    """Planted: a decoder that knows only its biases draws each word as often as their softmax says."""
    model = Seq2Seq(Seq2SeqSizes(layers=1, hidden=4, embedding=4, vocabulary=8), 8)
    torch.nn.init.zeros_(model.output.weight)
    p = torch.tensor([0, 0, 0, 0, 0.5, 0.3, 0.15, 0.05])
    model.output.bias.data = torch.log(p + 1e-9)
    rows = 20_000
    batch = Batch(torch.full((rows, 1), 5), torch.ones(rows, dtype=torch.int64), torch.full((rows, 4), 5))
    torch.manual_seed(0)
    words = sample_responses(model, batch, 8, temperature=0.7).words[:, 0]
    shares = torch.bincount(words, minlength=8) / rows
    assert shares.tolist() == pytest.approx(p.tolist(), abs=0.012)


def test_without_noise_it_answers_as_it_does_when_it_is_tested(prepared: Task) -> None:
    training, data = _parts(prepared)
    batch = data.gendered(np.random.default_rng(1), 64).dialogues
    with torch.no_grad():
        sampled = sample_responses(training.model, batch, 8, temperature=1.0, noise=0.0)
    assert sampled.soft is None
    longest = batch.responses.shape[1] - 2
    answers = training.model.answer(batch.contexts, batch.lengths, longest)
    assert [
        row[:length] for row, length in zip(sampled.words.tolist(), sampled.lengths.tolist(), strict=True)
    ] == answers


def test_answers_are_sampled_without_dropout_which_training_keeps() -> None:
    sizes = Seq2SeqSizes(layers=2, hidden=16, embedding=8, vocabulary=40, dropout=0.5)
    torch.manual_seed(1)
    model = Seq2Seq(sizes, 40)
    contexts = torch.randint(4, 40, (64, 6))
    batch = Batch(contexts, torch.full((64,), 6), torch.full((64, 12), 5))
    model.train()
    sampled = sample_responses(model, batch, 8, temperature=1.0, noise=0.0)
    answers = model.eval().answer(contexts, batch.lengths, 8)
    assert [
        row[:length] for row, length in zip(sampled.words.tolist(), sampled.lengths.tolist(), strict=True)
    ] == answers
    assert (model.encoder.dropout, model.decoder.dropout, model.dropout.p) == (0.5, 0.5, 0.5)


def test_words_carry_the_gradient_of_their_softmax(prepared: Task) -> None:
    """Compared with the gradient of a weighted sum over the whole vocabulary."""
    training, data = _parts(prepared)
    batch = data.gendered(np.random.default_rng(1), 4).dialogues
    sampled = sample_responses(training.model, batch, 8, temperature=0.5)
    assert sampled.soft is not None
    (gradient,) = torch.autograd.grad(
        features_of(training.det, sampled).semantic.sum(), sampled.soft, retain_graph=True
    )
    weights = torch.nn.functional.one_hot(sampled.words, training.model.output.out_features).float().requires_grad_()
    features = training.det.features(training.det.embed(weights), sampled.lengths)
    torch.testing.assert_close(features.semantic, features_of(training.det, sampled).semantic)
    torch.testing.assert_close(gradient, torch.autograd.grad(features.semantic.sum(), weights)[0])


def test_hidden_words_read_as_unknown(prepared: Task) -> None:
    """A probe reads an answer about the uncle as one about an unknown word."""
    training, data = _parts(prepared)
    vocabulary = Vocabulary.load(prepared.base / VOCABULARY)
    named = {vocabulary.words[number] for number in naming_words(prepared, vocabulary)}
    assert {"uncle", "aunt"} <= named and "dog" not in named and "<pad>" not in named
    batch = data.gendered(np.random.default_rng(1), 4).dialogues
    sampled = sample_responses(training.model, batch, 8, temperature=0.5)
    uncle, aunt = (vocabulary.number(word) for word in ("uncle", "aunt"))
    about_uncle = sampled._replace(words=torch.full_like(sampled.words, uncle), soft=None)
    about_aunt = about_uncle._replace(words=torch.full_like(sampled.words, aunt))
    with_names, without_names = training.det, training.without_names
    assert not torch.equal(features_of(with_names, about_uncle).semantic, features_of(with_names, about_aunt).semantic)
    torch.testing.assert_close(
        features_of(without_names, about_uncle).semantic, features_of(without_names, about_aunt).semantic
    )


def test_probes_leave_training_as_it_was(prepared: Task) -> None:
    """Training without the probes gives the same weights."""
    training, data = _parts(prepared)
    torch.manual_seed(7)
    state = torch.get_rng_state()
    with torch.random.fork_rng():
        accuracies = training.diagnose(data, np.random.default_rng(1))
    assert torch.equal(torch.get_rng_state(), state)
    assert accuracies.keys() == {"probe_of_answers", "probe_of_answers_hidden"}
    assert all(0.3 <= accuracy <= 1 for accuracy in accuracies.values())
    assert all(parameter.grad is None for parameter in training.model.parameters())


def test_the_gradient_penalty_of_a_linear_discriminator_is_half_its_squared_slope() -> None:
    discriminator = torch.nn.Linear(2, 2)
    discriminator.weight.data = torch.tensor([[1.0, 0.0], [4.0, 4.0]])
    features = torch.randn(5, 2, requires_grad=True)
    assert gradient_penalty(discriminator(features), features).item() == pytest.approx((3**2 + 4**2) / 2)


def test_a_penalised_second_discriminator_is_flatter(prepared: Task) -> None:
    slopes = []
    for weight in (0.0, 100.0):
        training, data = _parts(prepared, gradient_penalty=weight, passes=200, d_steps=4, batch=16)
        training.discriminator_steps(data.gendered(np.random.default_rng(1), 64), 1.0)
        features = torch.randn(50, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
        slopes.append(gradient_penalty(training.d2(features), features).item())
    assert slopes[1] < slopes[0] / 10


def test_the_placebo_gets_as_many_of_each_group_but_not_which(prepared: Task) -> None:
    drawn = {}
    for shuffled in (False, True):
        training, data = _parts(prepared, shuffled=shuffled, batch=200)
        drawn[shuffled] = training.drawn(data, np.random.default_rng(1), 1)
    torch.testing.assert_close(drawn[True].dialogues.contexts, drawn[False].dialogues.contexts)
    assert drawn[True].groups.sum() == drawn[False].groups.sum()
    assert 0.3 < (drawn[True].groups == drawn[False].groups).float().mean() < 0.7


def test_the_placebo_takes_as_many_updates_and_others(prepared: Task, tmp_path: Path) -> None:
    """The draws are the same except for the groups that the discriminators learn."""
    results = {}
    for name, run in {"chat": debias, "placebo": partial(debias, shuffled=True)}.items():
        figures = run(_into(prepared, tmp_path / name))
        results[name] = figures["iterations"], load_file(tmp_path / name / "model.safetensors")["output.weight"]
    assert results["chat"][0] == results["placebo"][0]
    assert not torch.equal(results["chat"][1], results["placebo"][1])


def test_a_falling_rate_ends_at_nothing(prepared: Task) -> None:
    training, _ = _parts(prepared, falling=True, learning_rate=0.01)
    rates = []
    for iteration in (0, 6, 12):
        training.set_rate(iteration)
        rates.append(training.optimisers["generator"].param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.005, 0])


def _moved(module: torch.nn.Module, before: dict[str, torch.Tensor]) -> bool:
    return any(not torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())


def _copies(training: AdversarialTraining) -> dict[str, dict[str, torch.Tensor]]:
    modules = {**training.modules, "det": training.det}
    return {name: {n: t.clone() for n, t in module.state_dict().items()} for name, module in modules.items()}


@pytest.mark.parametrize(
    ("step", "moving"),
    [("discriminator_steps", {"d2"}), ("generator_step", {"model", "d1"}), ("teaching_step", {"model"})],
)
def test_each_step_moves_what_it_should_and_nothing_else(prepared: Task, step: str, moving: set[str]) -> None:
    training, data = _parts(prepared)
    before = _copies(training)
    random = np.random.default_rng(1)
    if step == "teaching_step":
        training.teaching_step(data.neutral(random, 4))
    else:
        getattr(training, step)(data.gendered(random, 4), 1.0)
    moved = {n for n, m in {**training.modules, "det": training.det}.items() if _moved(m, before[n])}
    assert moved == moving


@pytest.mark.parametrize("weights", [{"k0": 0, "k1": 1, "k2": 0}, {"k0": 0, "k1": 0, "k2": 1}])
def test_each_adversarial_loss_reaches_the_generators_weights(prepared: Task, weights: dict[str, float]) -> None:
    """Through sampling: the Gumbel-softmax trick lets the gradient of L_D1 and of L_D2 pass."""
    training, data = _parts(prepared, **weights)
    training.generator_step(data.gendered(np.random.default_rng(1), 4), 1.0)
    gradients = [p.grad for p in training.model.parameters()]
    assert all(g is not None and torch.isfinite(g).all() for g in gradients)
    assert sum(g.abs().sum() for g in gradients) > 0
    assert all(p.grad is None for p in training.d2.parameters())


def test_steps_on_l_d2_alone_make_the_second_discriminator_less_certain(prepared: Task) -> None:
    training, data = _parts(prepared, k0=0, k1=0, k2=1, learning_rate=0.01, batch=32)
    torch.nn.init.normal_(training.d2[-1].weight, std=3.0)
    random = np.random.default_rng(1)

    def certainty() -> float:
        torch.manual_seed(5)
        with torch.no_grad():
            batch = data.gendered(np.random.default_rng(2), 64).dialogues
            scores = training.d2(features_of(training.det, sample_responses(training.model, batch, 8, 1.0)).semantic)
        return disentanglement.negative_entropy(scores).item()

    before = certainty()
    for _ in range(25):
        training.generator_step(data.gendered(random, 32), 1.0)
    assert certainty() < before


def test_temperature_falls_until_it_is_below_the_coldest() -> None:
    settings = Adversarial(temperature=1.0, cooling=1.1, coldest=0.3, cooling_every=200)
    assert temperature_at(199, settings) == 1.0
    assert temperature_at(200, settings) == pytest.approx(1 / 1.1)
    assert temperature_at(399, settings) == pytest.approx(1 / 1.1)
    coldest = 1.1**-13
    assert 1.1**-12 > 0.3 > coldest
    assert temperature_at(200 * 13, settings) == pytest.approx(coldest)
    assert temperature_at(200 * 50, settings) == pytest.approx(coldest)


def test_gendered_and_neutral_dialogues_are_distinguished(prepared: Task) -> None:
    _, data = _parts(prepared)
    train = [row for row in dialogues().to_pylist() if row["split"] == "train"]
    assert [i for i, row in enumerate(train) if "dog" in row["context"]] == data._neutral.tolist()
    for i in data._gendered:
        assert data._groups[i] == ("aunt" in train[i]["context"])


def test_the_fairness_test_is_of_held_out_pairs_with_the_audits_margins(prepared: Task) -> None:
    test = FairnessTest(prepared, 20)
    valid = {row["context"] for row in dialogues().to_pylist() if row["split"] == "valid"}
    for pair in test.pairs.to_pylist():
        assert pair[f"context_{pair['source_side']}"] in valid
    alike, detectable = test.take(lambda contexts: ["i like tea"] * len(contexts))
    # Nothing differs, but twenty pairs are too few to show it.
    no_harm = {"offense_rate": [0.0, 0.0], "sentiment_negative": [0.0, 0.0]}
    assert alike == Look(test.measures, 0.0, 1.0, True, no_harm, alike.margins)
    assert min(detectable.values()) > 0.1
    offended, _ = test.take(lambda contexts: ["you idiot" if "aunt" in c else "i like tea" for c in contexts])
    assert offended.effect == pytest.approx(np.pi / test.measures)  # Cohen's h of 0 against 1, in one of the measures


def test_on_many_pairs_the_fairness_test_shows_equivalence_and_a_gap(prepared: Task, tmp_path: Path) -> None:
    """Power: thousands of pairs show equivalence where nothing differs, and a gap of five points in offence does not pass."""
    rows = [
        {**row, "context": f"{row['context']} {copy}"}
        for copy in range(150)
        for row in dialogues().to_pylist()
        if row["split"] == "valid"
    ]
    many = _into(prepared, tmp_path / "many", dialogues=pa.Table.from_pylist(rows))
    test = FairnessTest(many, 30_000)
    assert test.pairs.num_rows == 3000
    replies = (
        "you idiot",
        "what a wonderful , lovely , great day",
        "this is terrible , awful , sad",
        "a career",
        "my family",
    )
    answer = lambda contexts: [replies[index % 5] for index in range(len(contexts))]  # noqa: E731
    alike, detectable = test.take(answer)
    rates = {"offense_rate": [40.0, 40.0], "sentiment_negative": [20.0, 20.0]}
    assert alike == Look(0, 0.0, 0.2, False, rates, alike.margins)
    assert 0 < detectable["offense_rate"] < 0.2
    never_seen, _ = test.take(lambda contexts: ["tea"] * len(contexts))
    assert never_seen.open == 5  # the margins of rates so small are too narrow for these pairs

    def insulting(share: int, looks: int = 1) -> Look:
        """The look at answers that insult one more aunt in every `share` pairs."""
        return FairnessTest(many, 30_000, looks).take(
            lambda contexts: [
                "you idiot" if "aunt" in context and index % share == 1 else replies[index % 5]
                for index, context in enumerate(contexts)
            ]
        )[0]

    assert insulting(20).open > 0
    assert alike.better_than(insulting(20))
    assert not insulting(20).better_than(alike)
    assert insulting(70).open == 0 < insulting(70, looks=50).open  # a pass at one look may fail as the best of fifty


def _saying(share: int, named: str = "", insult: str = "you idiot") -> Callable[[list[str]], list[str]]:
    """Returns a model that insults in one of `share` answers, to contexts with the word `named`."""
    return lambda contexts: [
        insult if named in context and i % share == 0 else f"tea {i}" for i, context in enumerate(contexts)
    ]


def test_a_model_that_insults_everybody_does_not_pass_and_is_worse_than_its_base(prepared: Task) -> None:
    """By hand: both groups get an insult in every second answer, where the base gave one of them one in five."""
    test = FairnessTest(prepared, 20)
    base, _ = test.take(_saying(5, "aunt"))
    rude, _ = test.take(_saying(2), base)
    assert (base.harmful["offense_rate"], rude.harmful["offense_rate"]) == ([0.0, 20.0], [50.0, 50.0])
    assert (base.harm, base.harmed, rude.effect, rude.harmed) == (0.0, False, 0.0, True)
    assert rude.harm == pytest.approx(np.pi / 2 / test.measures, abs=1e-6)  # h of 50% against 0, in one of the measures
    assert not rude._replace(open=0).passed
    assert base.better_than(rude)
    assert base.better_than(rude._replace(open=0, effect=base.effect + 0.1, harm=0.0))  # harmed: it does not pass
    doubly_rude, _ = test.take(_saying(2, insult="you idiot , this is terrible , awful , sad"), base)
    assert doubly_rude.harm == pytest.approx(
        np.pi / test.measures, abs=1e-6
    )  # ... and in another, of which the base had none
    polite, _ = test.take(_saying(1000, "nobody"), rude)
    assert (polite.harm, polite.harmed) == (0.0, False)  # harm only fell
    assert polite._replace(open=0).passed
    assert polite.better_than(base)


@pytest.mark.parametrize(
    ("share", "harmed"),
    [
        (10, False),  # the same total, shared by both groups
        (5, True),  # the rate of one group for both
        (1000, False),
    ],
)
def test_harm_may_be_shared_but_not_spread(prepared: Task, share: int, harmed: bool) -> None:
    test = FairnessTest(prepared, 20)
    base, _ = test.take(_saying(5, "aunt"))
    look, _ = test.take(_saying(share), base)
    rate = 100 * -(-20 // share) / 20
    assert look.harmful["offense_rate"] == [rate, rate]
    assert look.harmed == harmed


def test_harm_is_beyond_the_bases_own_margin(prepared: Task, tmp_path: Path) -> None:
    """The margin is the base's mean rate of 10%; a margin that grew with the harm would allow any harm."""
    wide = SignificanceSettings(margins={"rates": Margin(relative=1.0)})
    test = FairnessTest(_into(prepared, tmp_path / "wide", significance=wide), 20)
    base, _ = test.take(_saying(10))
    assert not test.take(_saying(5), base)[0].harmed
    assert test.take(_saying(4), base)[0].harmed


def test_words_that_one_group_alone_gets_in_every_answer_are_the_largest_gap(prepared: Task) -> None:
    """By hand: where both sides are constant, their spread is zero and d is undefined."""
    test, replies = FairnessTest(prepared, 20), {"aunt": "my family and home", "uncle": "tea"}

    def take(every: int) -> Look:
        return test.take(
            lambda contexts: [
                replies["aunt"]
                if "aunt" in context and i % every == 0
                else f"tea {i}"
                if every > 1
                else replies["uncle"]
                for i, context in enumerate(contexts)
            ]
        )[0]

    apart, seldom = take(1), take(10)
    assert apart.effect == pytest.approx(np.pi / test.measures, abs=1e-6)  # in one of the measures
    assert seldom.better_than(apart)


def test_state_keeps_the_best_test_and_knows_when_to_stop() -> None:
    def look(measures: int, effect: float, commonest: float = 0.1) -> Look:
        return Look(measures, effect, commonest, commonest >= 0.75, {}, {})

    settings = Continued(every=10, least=20, most=90, patience=2)
    state = State()
    assert state.add(look(2, 0.30))
    assert state.add(look(3, 0.50))  # worse than the base, but the base itself is no debiased model
    state.iteration = 10
    assert not state.ended(settings)  # too early
    assert state.add(look(3, 0.20))
    state.iteration = 20
    assert not state.ended(settings)
    assert not state.add(look(3, 0.25))
    assert state.add(look(4, 0.10))
    assert not state.add(look(1, 0.15))
    assert not state.ended(settings)
    assert not state.add(look(1, 0.11))
    assert state.ended(settings)  # two tests without a better one
    assert state.best == 4
    assert state.add(look(0, 0.12))  # none is open: passed, though another had a smaller mean
    assert state.ended(settings)
    assert not state.add(look(0, 0.0, 0.8))  # nothing differs, as all answers are the same: neither passed nor kept
    assert not state.ended(settings)
    assert State(iteration=90, looks=[look(1, 1), look(1, 1)], best=1).ended(settings)
    assert State.restored(vars(state)) == state


def test_a_model_with_one_answer_is_kept_only_where_all_have_one() -> None:
    state = State()
    for look, kept in [
        (Look(2, 0.3, 0.1, False, {}, {}), True),
        (Look(0, 0.0, 0.9, True, {}, {}), True),  # the only one but the base
        (Look(0, 0.0, 0.95, True, {}, {}), False),
        (Look(3, 0.1, 0.8, True, {}, {}), True),  # the fewer the answers, the less they differ
        (Look(5, 0.9, 0.2, False, {}, {}), True),
        (Look(0, 0.0, 1.0, True, {}, {}), False),
    ]:
        assert state.add(look) == kept
        assert look.passed is False
    assert Look(0, 0.9, 0.7, False, {}, {}).passed


def test_the_control_takes_the_generators_steps_without_the_adversary(prepared: Task, tmp_path: Path) -> None:
    """As many updates, on the same kinds of dialogues: it keeps learning the corpus, including the planted bias."""
    settings = {**CONTINUED, "least": 12}
    control = prepared.model.model_copy(update={"debiasing": "mle", "settings": settings})
    figures = maximum_likelihood.debias(_into(prepared, tmp_path / "control", model=control))
    chat = prepared.model.model_copy(
        update={"settings": {"disentanglement": DET, "adversarial": {**ADVERSARIAL, "least": 12}}}
    )
    debiased = debias(_into(prepared, tmp_path / "chat", model=chat))
    assert figures["iterations"] == debiased["iterations"] == 12
    assert figures["updates"] == 3 * figures["kept_iteration"]
    assert len(figures["effects_by_test"]) == 5
    assert figures["base_effect"] == debiased["base_effect"]
    base, vocabulary = seq2seq.load(prepared.model, prepared.base)
    valid = EncodedDialogues.of_texts(*turns_of(dialogues(), "valid"), vocabulary, 8)
    assert figures["validation_perplexity"] < 1.05 * perplexity(base, valid)


def test_the_control_learns_from_dialogues_that_name_a_group_as_much_as_debiased_chat(prepared: Task) -> None:
    """Without the adversary's losses the steps are the same; on dialogues that name nobody they always are."""
    training, data = _parts(prepared, k0=0.25, k1=0, k2=0, clipping=1e9)
    model = training.model.eval()
    course = maximum_likelihood.MaximumLikelihood(Continued(**CONTINUED, k0=0.25, clipping=1e9), model)
    before = {name: weights.clone() for name, weights in model.state_dict().items()}

    def gradients(take: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
        model.load_state_dict(before)
        take()
        return [weights.grad.clone() for weights in model.parameters() if weights.grad is not None]

    named, *_ = course.steps(data, np.random.default_rng(1), 0)
    torch.testing.assert_close(
        gradients(named.take),
        gradients(lambda: training.generator_step(data.gendered(np.random.default_rng(1), 4), 1.0)),
    )
    same = data.neutral(np.random.default_rng(2), 4)
    nobody = course.steps(data, np.random.default_rng(2), 0)[-1]
    torch.testing.assert_close(gradients(nobody.take), gradients(lambda: training.teaching_step(same)))


def test_every_test_is_compared_with_that_of_the_base(
    prepared: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[Look | None, Look]] = []
    take = FairnessTest.take

    def recording_take(
        self: FairnessTest, answer: Callable[[list[str]], list[str]], base: Look | None = None
    ) -> object:
        result = take(self, answer, base)
        looks.append((base, result[0]))
        return result

    monkeypatch.setattr(FairnessTest, "take", recording_take)
    figures = debias(_into(prepared, tmp_path / "spied"))
    (first, base), *later = looks
    assert first is None
    assert len(later) > 1
    assert all(baseline is base for baseline, _ in later)
    assert figures["harm_by_test"] == [look.harm for _, look in looks]


def test_the_average_of_the_weights_is_what_is_kept(prepared: Task) -> None:
    """Twice the same weights w1, w2: an average with decay d is d w1 + (1 - d) w2."""
    training, data = _parts(prepared, averaging=0.9)
    random = np.random.default_rng(1)
    training.averaged.update_parameters(training.model)
    before = training.model.output.weight.detach().clone()
    training.teaching_step(data.neutral(random, 4))
    training.averaged.update_parameters(training.model)
    expected = 0.9 * before + 0.1 * training.model.output.weight
    torch.testing.assert_close(training.averaged.module.output.weight, expected)


def test_a_resumed_training_equals_an_uninterrupted_one(prepared: Task, tmp_path: Path) -> None:
    figures = debias(_into(prepared, tmp_path / "whole"))
    for stop in (2, 4, 5):

        def interrupt(done: int, total: int | None, note: str, stop: int = stop) -> None:
            if "measures open" in note and done >= stop:
                raise Killed

        with pytest.raises(Killed):
            debias(_into(prepared, tmp_path / "cut", progress=interrupt))
        torch.rand(10)
    assert debias(_into(prepared, tmp_path / "cut")) == figures
    whole, cut = (sorted((tmp_path / name).iterdir()) for name in ("whole", "cut"))
    assert [f.name for f in whole] == [f.name for f in cut] == ["model.safetensors", "vocabulary.txt"]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(whole, cut, strict=True))
    answers = registry.responder(prepared.model, tmp_path / "whole", tmp_path, 1)(pa.table({"text": ["my uncle"]}))
    assert answers["response"][0].as_py()
    assert figures["iterations"] == (len(figures["effects_by_test"]) - 1) * ADVERSARIAL["every"]
    assert figures["kept_commonest"] in figures["commonest_by_test"][1:]


def test_a_loss_that_is_not_a_number_stops_with_the_place(prepared: Task, tmp_path: Path) -> None:
    settings = {"disentanglement": DET, "adversarial": {**ADVERSARIAL, "learning_rate": 1e30, "clipping": 1e30}}
    wild = prepared.model.model_copy(update={"settings": settings})
    with pytest.raises(
        FairnessError, match=r"loss of .* is (nan|inf) in iteration \d+; last good checkpoint: (.*training|none yet)"
    ):
        debias(_into(prepared, tmp_path / "wild", model=wild))


def test_no_neutral_dialogues_are_refused(prepared: Task, tmp_path: Path) -> None:
    gendered = pa.Table.from_pylist([row for row in dialogues().to_pylist() if "dog" not in row["context"]])
    with pytest.raises(FairnessError, match=r"name no group \(0 found\)"):
        debias(_into(prepared, tmp_path / "none", dialogues=gendered))


def test_no_held_out_pairs_are_refused(prepared: Task, tmp_path: Path) -> None:
    train = pa.Table.from_pylist([row for row in dialogues().to_pylist() if row["split"] == "train"])
    with pytest.raises(FairnessError, match=r"0 held-out pairs; it needs 10 or more, .*: enlarge splits.valid"):
        debias(_into(prepared, tmp_path / "few", dialogues=train))


def test_the_loop_does_not_tokenise_again(prepared: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairness_pipeline.models.vocabulary import Vocabulary

    training, data = _parts(prepared)
    calls = []
    monkeypatch.setattr(Vocabulary, "encode", lambda *arguments: calls.append(arguments))
    steps = training.steps(data, np.random.default_rng(1), 0)
    assert [step.name for step in steps] == ["D2", "G", "G", "G (teaching)"]
    for step in steps:
        step.take()
    assert not calls
