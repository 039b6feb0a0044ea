"""Language models: perplexities against one text at a time, training that resumes, and errors."""

import json
import math
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
import transformers

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.models.language import fine_tuning, registry
from fairness_pipeline.models.language.perplexity import PerplexityScorer
from fairness_pipeline.models.watching import Watch
from fairness_pipeline_tests.conftest import Killed
from fairness_pipeline_tests.models.language.tiny import TEXTS, causal, specification, trained


def one_at_a_time(model, tokenizer, text: str) -> float:
    """The perplexity of one text, computed as in the authors' script."""
    tokens = torch.tensor([tokenizer(text)["input_ids"]])
    with torch.no_grad():
        return math.exp(model(tokens, labels=tokens).loss.item())


def test_batches_give_what_one_text_at_a_time_gives(tmp_path: Path) -> None:
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    texts = list(dict.fromkeys(TEXTS))
    scored = PerplexityScorer(model, tokenizer)(pa.table({"text": texts}))
    expected = [one_at_a_time(model, tokenizer, text) for text in texts]
    assert scored["perplexity"].to_pylist() == pytest.approx(expected, rel=1e-5)
    assert scored["tokens"].to_pylist() == [len(tokenizer(text)["input_ids"]) - 1 for text in texts]


def test_an_offline_machine_saves_the_same_checkpoint(tmp_path: Path) -> None:
    trained(tmp_path / "m")
    files = []
    for offline in (True, False):
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
        tokenizer.init_kwargs["local_files_only"] = offline  # as transformers records HF_HUB_OFFLINE
        model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m")
        registry.save(model, tokenizer, tmp_path / str(offline))
        files.append({path.name: path.read_bytes() for path in (tmp_path / str(offline)).iterdir()})
    assert files[0] == files[1]


def test_what_stands_before_a_text_is_given_and_not_scored(tmp_path: Path) -> None:
    """After a chat template's opening only the text is scored, each token given all before it."""
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    texts, prefix = list(dict.fromkeys(TEXTS)), "they say: "
    scored = PerplexityScorer(model, tokenizer, prefix)(pa.table({"text": texts}))
    prefix_tokens = tokenizer(prefix)["input_ids"]
    for text, perplexity, count in zip(
        texts, *(scored[name].to_pylist() for name in ("perplexity", "tokens")), strict=True
    ):
        tokens = tokenizer(text)["input_ids"]
        with torch.no_grad():
            logs = model(torch.tensor([[*prefix_tokens, *tokens]])).logits[0].log_softmax(-1)
        log_likelihood = sum(
            logs[len(prefix_tokens) - 1 + position, token].item() for position, token in enumerate(tokens)
        )
        assert count == len(tokens) and perplexity == pytest.approx(math.exp(-log_likelihood / count), rel=1e-5)


def test_a_chat_template_is_a_choice(tmp_path: Path) -> None:
    sizes = {"layers": 1, "heads": 2, "embedding": 16, "positions": 128, "vocabulary": 400}
    model, tokenizer = registry.load(trained(tmp_path / "m", gpt2=sizes), tmp_path / "m")
    folder = tmp_path / "chat"
    model.save_pretrained(folder)
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}<bot> "
    tokenizer.save_pretrained(folder)
    source = {"name": str(folder), "chat": True, "system": "Be kind."}
    spec = causal(folder).model_copy(update={"huggingface": causal(folder).huggingface.model_validate(source)})
    assert (
        spec.identity()["huggingface"]["system"] == "Be kind."
        and "chat" not in causal(folder).identity()["huggingface"]
    )
    (tmp_path / "made").mkdir()
    registry.prepare(spec, [], tmp_path / "made", 1)
    texts = pa.table({"text": ["jews are greedy"]})
    scored = registry.perplexity_scorer(spec, tmp_path / "made")(texts)
    prefix = f"<system> Be kind. <user> {registry.ASKED} <bot> "
    expected = PerplexityScorer(model, tokenizer, prefix)(texts)
    assert scored["perplexity"].to_pylist() == pytest.approx(expected["perplexity"].to_pylist(), rel=1e-6)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(folder)
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    with pytest.raises(FairnessError, match="has no chat template; set 'chat: false'"):
        registry.perplexity_scorer(spec, tmp_path / "made")(texts)


def test_a_mark_before_each_text_is_reported(tmp_path: Path) -> None:
    from tokenizers.processors import TemplateProcessing

    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    assert PerplexityScorer(model, tokenizer).examination()["begins_with"] == ""
    assert PerplexityScorer(model, tokenizer, "hello").examination()["begins_with"] == "a chat template"
    end = tokenizer.eos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{end} $A", special_tokens=[(end, tokenizer.eos_token_id)]
    )
    scorer = PerplexityScorer(model, tokenizer)
    assert scorer.examination()["begins_with"] == end
    (count,) = scorer(pa.table({"text": ["jews are greedy"]}))["tokens"].to_pylist()
    assert count == len(tokenizer("jews are greedy", add_special_tokens=False)["input_ids"])  # the first word, too


def test_a_model_with_a_sliding_window() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    model = MistralForCausalLM(
        MistralConfig(vocab_size=50, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                      num_key_value_heads=2, sliding_window=6, initializer_range=0.5)
    ).eval()  # fmt: skip

    class NumberTokenizer:
        def __call__(self, texts, **options):
            rows = [[int(word) for word in text.split()] for text in ([texts] if isinstance(texts, str) else texts)]
            return {"input_ids": rows[0] if isinstance(texts, str) else rows}

    numbers = [" ".join(str((7 * n + i) % 50) for i in range(16)) for n in range(3)]
    texts = ["1 2 3", "1 2 4", *numbers, *(f"{prefix} 9 8" for prefix in numbers)]
    scorer = PerplexityScorer(model, NumberTokenizer())
    scored = scorer(pa.table({"text": texts}))["perplexity"].to_pylist()
    assert scored == pytest.approx([one_at_a_time(model, NumberTokenizer(), text) for text in texts], rel=1e-4)


def test_the_real_vocabulary(tmp_path: Path, corpora: Path) -> None:
    """A folder with GPT-2's tokenizer, as users have it."""
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

    torch.manual_seed(0)
    folder = tmp_path / "gpt2"
    GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=2, n_positions=64)).save_pretrained(folder)
    GPT2TokenizerFast.from_pretrained(corpora / "lm_reference" / "gpt2_117M").save_pretrained(folder)
    spec = causal(folder)
    (tmp_path / "made").mkdir()
    assert registry.prepare(spec, [], tmp_path / "made", 1)["model_type"] == "gpt2"
    model, tokenizer = registry.load(spec, tmp_path / "made")
    texts = ["jews are greedy", "christians are greedy, they say", "he said so"]
    scored = PerplexityScorer(model, tokenizer)(pa.table({"text": texts}))["perplexity"].to_pylist()
    assert scored == pytest.approx([one_at_a_time(model, tokenizer, text) for text in texts], rel=1e-5)


def test_a_chunk_s_result_does_not_depend_on_the_chunks_before_it(tmp_path: Path) -> None:
    """Chunks may be scored by several processes: the bytes are the same."""
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    texts = sorted(set(TEXTS), key=len)
    chunks = [pa.table({"text": texts[start : start + 3]}) for start in range(0, len(texts), 3)]
    scorer = PerplexityScorer(model, tokenizer)
    alone = [PerplexityScorer(model, tokenizer)(chunk) for chunk in chunks]
    assert [scorer(chunk) for chunk in reversed(chunks)] == alone[::-1]


def test_a_model_that_changes_its_logits_is_called_as_a_whole(tmp_path: Path) -> None:
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    plain = type(model).forward

    def doubled(self, *arguments, **options):
        output = plain(self, *arguments, **options)
        output.logits = output.logits * 2
        return output

    model.forward = doubled.__get__(model)
    scorer = PerplexityScorer(model, tokenizer)
    scored = scorer(pa.table({"text": ["jews are greedy", "the phone is new"]}))["perplexity"].to_pylist()
    model.forward = doubled.__get__(model)
    for value, text in zip(scored, ["jews are greedy", "the phone is new"], strict=True):
        logits = model(torch.tensor([tokenizer(text)["input_ids"]])).logits[0, :-1]
        targets = torch.tensor(tokenizer(text)["input_ids"][1:])
        assert value == pytest.approx(math.exp(torch.nn.functional.cross_entropy(logits, targets).item()), rel=1e-5)


def test_out_of_a_gpus_memory_the_batch_is_halved_with_the_same_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    table = pa.table({"text": sorted(set(TEXTS), key=len)})
    whole = PerplexityScorer(model, tokenizer)(table)
    plain = PerplexityScorer._losses

    def small(self, rows):
        if len(rows) > 1:
            raise torch.OutOfMemoryError
        return plain(self, rows)

    monkeypatch.setattr(PerplexityScorer, "_losses", small)
    halved = PerplexityScorer(model, tokenizer)(table)
    assert halved["perplexity"].to_pylist() == pytest.approx(whole["perplexity"].to_pylist(), rel=1e-6)


@pytest.mark.parametrize("step", [1, 2])
def test_a_training_out_of_memory_makes_the_same_updates_in_more_steps(tmp_path: Path, step: int) -> None:
    """In the first step or in a later one: earlier updates are not repeated."""
    model, tokenizer = registry.load(trained(tmp_path / "m"), tmp_path / "m")
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # its draws depend on the batch
    initial = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    examples = [{"input_ids": tokenizer("jews are greedy and loud")["input_ids"]} for _ in range(8)]
    recipe = fine_tuning.Recipe(1, 4, 1, 0.01)
    weights = []
    for most in (4, 2):
        model.load_state_dict(initial)
        steps = 0

        def loss(model, batch, most=most):
            nonlocal steps
            steps += 1
            if steps >= step and len(batch["input_ids"]) > most:
                raise torch.OutOfMemoryError
            return fine_tuning.language_modelling(model, batch)

        fine_tuning.train(model, examples, recipe, tmp_path / f"run{most}", 1, loss=loss)
        weights.append(model.state_dict()["transformer.wte.weight"].clone())
    assert not torch.equal(weights[0], initial["transformer.wte.weight"])
    assert torch.allclose(weights[0], weights[1], atol=1e-6)


def test_a_killed_training_resumes_to_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def train(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        registry.prepare(specification(), TEXTS, folder, 1)

    train(tmp_path / "whole")
    monkeypatch.setattr(fine_tuning, "_CHECKPOINT_SECONDS", 0.0)
    plain = fine_tuning.language_modelling
    steps = 0

    def killed(model, batch):
        nonlocal steps
        steps += 1
        if steps == 4:
            raise Killed
        return plain(model, batch)

    monkeypatch.setitem(fine_tuning.train.__kwdefaults__, "loss", killed)
    with pytest.raises(Killed):
        train(tmp_path / "killed")
    assert list((tmp_path / "killed").rglob("checkpoint-*"))
    (tmp_path / "killed" / "trainer" / "checkpoint-99").mkdir()  # an incomplete checkpoint after a kill
    monkeypatch.setitem(fine_tuning.train.__kwdefaults__, "loss", plain)
    train(tmp_path / "killed")
    whole, resumed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("whole", "killed")
    )
    assert whole == resumed


def test_invalid_texts_and_models_are_refused(tmp_path: Path) -> None:
    spec = trained(tmp_path / "m")
    model, tokenizer = registry.load(spec, tmp_path / "m")
    with pytest.raises(FairnessError, match="a text has .* tokens, and the model 32 positions; shorten it"):
        PerplexityScorer(model, tokenizer)(pa.table({"text": ["greedy " * 60]}))
    with pytest.raises(FairnessError, match="a text of one token has no perplexity, as nothing stands before it: 'a'"):
        PerplexityScorer(model, tokenizer)(pa.table({"text": ["a"]}))
    with pytest.raises(FairnessError, match="nothing to train on: the corpus has no comments"):
        registry.prepare(spec, [], tmp_path / "m", 1)
    with pytest.raises(FairnessError, match="the training loss is nan in step 1; lower the learning rate"):
        fine_tuning.train(
            model, [{"input_ids": [1, 2]}], fine_tuning.Recipe(1, 1, 1, 0.1), tmp_path / "r", 1,
            loss=lambda model, batch: model.transformer.wte.weight.sum() * float("nan"),
        )  # fmt: skip
    bare = tmp_path / "bare"
    shutil.copytree(tmp_path / "m", bare)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        path = bare / name
        if path.exists():
            kept = {key: value for key, value in json.loads(path.read_text()).items() if not key.endswith("_token")}
            path.write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(FairnessError, match="has neither a padding nor an end token"):
        registry.prepare(causal(bare), [], tmp_path / "m", 1)
    weights = tmp_path / "m" / "model.safetensors"
    other = tmp_path / "other"
    trained(other, gpt2={"layers": 1, "heads": 2, "embedding": 32, "positions": 32, "vocabulary": 400})
    shutil.copyfile(other / "model.safetensors", weights)
    with pytest.raises(FairnessError, match="cannot be loaded"):
        registry.load(spec, tmp_path / "m")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"huggingface": {"name": "x"}}, "architecture 'gpt2' does not take 'huggingface'"),
        ({"fitting": None}, "architecture 'gpt2' needs 'fitting'"),
        ({"base": "x"}, "'base' and 'debiasing' go together"),
        ({"dimensions": ["gender"]}, "'dimensions' needs a method"),
        ({"gpt2": {"layers": 1, "heads": 3, "embedding": 16, "vocabulary": 400}}, "'embedding' to be a multiple"),
    ],
)
def test_an_invalid_specification_is_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        specification(**changes)


@pytest.mark.filterwarnings("ignore")
def test_a_state_that_is_no_number_is_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU losses are rarely read, but always before a checkpoint."""
    monkeypatch.setattr(fine_tuning, "Watch", partial(Watch, every=20))
    monkeypatch.setattr(fine_tuning, "_CHECKPOINT_SECONDS", 0)
    steps = 0

    def loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        nonlocal steps
        steps += 1
        return fine_tuning.language_modelling(model, batch) * (torch.nan if steps == 3 else 1.0)

    examples = [{"input_ids": [1, 2, 3, i % 40]} for i in range(12)]
    recipe = fine_tuning.Recipe(1, 1, 1, 0.001)
    configuration = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    with pytest.raises(FairnessError, match="the training loss is nan in step 3"):
        fine_tuning.train(transformers.GPT2LMHeadModel(configuration), examples, recipe, tmp_path, 1, loss=loss)
    model = transformers.GPT2LMHeadModel(configuration)
    fine_tuning.train(model, examples, recipe, tmp_path, 1, loss=loss)  # resumes from step 2
    assert steps == 3 + 10
    assert all(weight.isfinite().all() for weight in model.state_dict().values())
