"""One step of a Llama-family model on torch's processor: the same numbers as transformers' own modules."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch", reason="needs the environment that scripts/gpu makes")
transformers = pytest.importorskip("transformers", reason="needs the environment that scripts/gpu makes")

from antiphon.core.errors import CallerError, EngineError  # noqa: E402
from antiphon.gpu.engine_lane import open_gpu  # noqa: E402
from antiphon.gpu.llama.engine import Asked, LlamaEngine  # noqa: E402
from antiphon.gpu.llama.shape import LlamaShape, shape_of_config  # noqa: E402
from antiphon.gpu.llama.step import LlamaStep, Row  # noqa: E402
from antiphon.gpu.llama.weights import gather_weights, random_weights  # noqa: E402

pytestmark = [pytest.mark.unit, pytest.mark.slow]

CPU = torch.device("cpu")
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
TINY = LlamaShape(
    layers=2, hidden=32, heads=4, kv_heads=2, head_size=16, feed_forward=48, vocabulary=97, context_tokens=512
)


@pytest.fixture
def gpu():
    opened = open_gpu("cpu")
    yield opened
    opened.close()


def oracle(**other: object) -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=300,
        hidden_size=96,
        intermediate_size=96,
        num_hidden_layers=3,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        **other,
    )
    return transformers.LlamaForCausalLM(config).eval()


def step_of(model: transformers.PreTrainedModel) -> LlamaStep:
    found = model.state_dict()
    weights = gather_weights(
        shape_of_config(model.config.to_dict()), lambda name: found[name].detach(), device=CPU, dtype=torch.float32
    )
    return LlamaStep(weights, pages=12, context_tokens=256)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"rope_scaling": LLAMA3},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0}},
        {"tie_word_embeddings": True},
    ],
    ids=["plain", "llama3", "linear", "tied"],
)
@torch.inference_mode()
def test_every_token_is_as_likely_as_in_transformers(other):
    """Read in chunks and token by token, over pages in any order, teacher-forced: the same odds."""
    model = oracle(**other)
    tokens = torch.randint(0, 300, (1, 150))
    expected = model(tokens).logits[0]
    step, found = step_of(model), []
    for start, end in ((0, 100), (100, 101), (101, 130), (130, 131), (131, 150)):
        rows = [Row(token=int(tokens[0, at]), position=at, pages=[3, 5, 1]) for at in range(start, end)]
        step.fill(rows)
        step.body(step.bucket(rows))()
        found.append(step.logits(len(rows)).clone())

    assert float((torch.cat(found) - expected).norm() / expected.norm()) < 1e-5
    assert expected[131:].argmax(-1).tolist() == step.chosen(19)


def test_sequences_in_one_step_do_not_see_each_other(gpu):
    """What a sequence writes is the same alone and among readers and writers of all lengths."""
    weights = random_weights(TINY, device=CPU, dtype=torch.float32)
    prompts = [[(7 * place + 3 * at) % 97 for at in range(5 + 31 * place)] for place in range(5)]

    def written(owners: list[int]) -> dict[int, list[int]]:
        engine = LlamaEngine(
            LlamaStep(weights, pages=40, context_tokens=256), gpu.engine(), pages=40, ends=(), read_tokens=48
        )
        works = {
            owner: engine.submit(
                Asked(
                    owner=owner,
                    prompt=prompts[owner],
                    take=lambda _: False,
                    most_tokens=12,
                    penalty=1.1,
                    temperature=0.5 * (owner % 2),
                    seed=owner,
                )
            )
            for owner in owners
        }
        while engine.turn():
            engine.book.check()
        return {owner: work.written for owner, work in works.items()}

    together = written([0, 1, 2, 3, 4])

    assert [12] * 5 == [len(text) for text in together.values()]
    assert together == {owner: written([owner])[owner] for owner in range(5)}


def test_a_changed_word_rewinds_and_a_stop_frees(gpu):
    """Only what differs is read again; what was written for nothing is free before the next step."""
    engine = LlamaEngine(
        LlamaStep(random_weights(TINY, device=CPU, dtype=torch.float32), pages=40, context_tokens=256),
        gpu.engine(),
        pages=40,
        ends=(),
    )
    prompt = [at % 97 for at in range(150)]
    cached, told = [], []

    def asked(prompt: list[int], stops_at: int) -> None:
        told.clear()

        def take(step: object) -> bool:
            told.append(step)
            return sum(each.token is not None for each in told) >= stops_at

        engine.submit(Asked(owner=1, prompt=prompt, take=take, most_tokens=200))
        while engine.turn():
            pass
        cached.append(told[-1].cached_tokens)

    asked(prompt, 60)
    assert 150 == len(engine.book.of(1).tokens)
    assert 3 == len(engine.book.of(1).pages)
    asked([*prompt[:100], 5, 6], 1)
    asked([*prompt[:100], 5, 6, 7], 1)

    assert [0, 100, 102] == cached


def test_a_prompt_beyond_the_context_is_refused(gpu):
    """By a message that says what to do."""
    engine = LlamaEngine(
        LlamaStep(random_weights(TINY, device=CPU, dtype=torch.float32), pages=9, context_tokens=256),
        gpu.engine(),
        pages=9,
        ends=(),
    )
    with pytest.raises(EngineError, match="does not fit into a context of 256"):
        engine.submit(Asked(owner=0, prompt=[1] * 300, take=lambda _: False, most_tokens=1))


def test_other_families_are_refused_by_name():
    """Before a weight is read."""
    with pytest.raises(CallerError, match="'gemma'"):
        shape_of_config({"model_type": "gemma"})
    with pytest.raises(CallerError, match="cannot share"):
        dataclasses.replace(TINY, heads=3)
