"""Prompts of every arm: exact, nested, made of nothing but their pieces; and what is said of outputs."""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from ddprobe.arms import ARMS, DEFAULT, digests, outputs, scripts, texts
from ddprobe.arms.base import FILLER, Ids, Needs, Script
from ddprobe.arms.chat import Question, around
from ddprobe.arms.far_copy import CUE
from ddprobe.arms.filler import filler
from ddprobe.errors import Unanswered

FOLDER = Path(__file__).parent.parent / "ddprobe" / "arms" / "texts"
LENGTHS = (1024, 1900, 4300, 16384)
NEEDS = Needs(seed=7, ceiling=8, window=2048)
LADDER = tuple(name for name, arm in ARMS.items() if arm.ladder)


class Tokenizer:
    """Words with the space before them, cut after six letters, signs alone: about 1.3 tokens a word."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> Ids:
        parts = re.findall(r"\n+| ?[a-zA-Z]{1,6}| ?\d{1,3}| ?[^\sa-zA-Z\d]+| +", text)
        assert "".join(parts) == text
        return tuple(self.ids.setdefault(part, len(self.ids)) for part in parts)


def tokenised(script: Script, longest: int, seed: int = 7) -> dict[str, Ids]:
    tokenizer = Tokenizer()
    tokens = {name: tokenizer(text) for name, text in script.pieces().items()}
    if isinstance(script, Question):
        tokens |= {script.head_name: tokenizer("USER:"), script.tail_name: tokenizer("END\n\nASSISTANT:")}
    return tokens | {FILLER: tokenizer(filler(seed, 6 * longest))[: script.filler(longest)]}


def every_script(needs: Needs = NEEDS) -> tuple[Script, ...]:
    return scripts(LADDER, needs)


def common(first: Ids, second: Ids) -> int:
    """Length of the common beginning."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return sum(1 for _ in pairs)


# --- what every script keeps -------------------------------------------------------------------------------


@pytest.mark.parametrize("script", every_script(), ids=lambda script: script.label)
def test_prompts_have_the_length_asked_for(script: Script) -> None:
    tokens = tokenised(script, LENGTHS[-1])
    assert script.shortest(tokens) <= LENGTHS[0]
    for length in (script.shortest(tokens), *LENGTHS):
        assert len(script.build(tokens, length, 0)) == length
        for variant in range(1, NEEDS.variants):
            assert length - length // 8 <= len(script.build(tokens, length, variant)) <= length


@pytest.mark.parametrize("script", every_script(), ids=lambda script: script.label)
def test_prompts_hold_only_ids_of_their_pieces(script: Script) -> None:
    tokens = tokenised(script, LENGTHS[-1])
    known = {token for ids in tokens.values() for token in ids}
    assert set(script.build(tokens, LENGTHS[-1], 3)) <= known


@pytest.mark.parametrize("script", every_script(), ids=lambda script: script.label)
def test_a_shorter_prompt_but_for_its_tail_begins_a_longer_one(script: Script) -> None:
    """The whole ladder then costs a prefix cache little more than the longest prompt."""
    tokens = tokenised(script, LENGTHS[-1])
    longest = script.build(tokens, LENGTHS[-1], 0)
    for length in LENGTHS:
        for variant in range(NEEDS.variants):
            assert common(script.build(tokens, length, variant), longest) >= length - 620


@pytest.mark.parametrize("variants", [1, 2, 4, 9])
@pytest.mark.parametrize("name", LADDER)
def test_every_variant_ends_differently(name: str, variants: int) -> None:
    for script in scripts([name], replace(NEEDS, variants=variants)):
        tokens = tokenised(script, 4300)
        for length in (script.shortest(tokens), 4300):
            prompts = [script.build(tokens, length, variant) for variant in range(variants)]
            assert len({(len(prompt), prompt[-20:]) for prompt in prompts}) == variants, script.label


@pytest.mark.parametrize("name", LADDER)
def test_the_same_seed_gives_the_same_prompts(name: str) -> None:
    for first, second in zip(scripts([name], NEEDS), scripts([name], NEEDS), strict=True):
        assert first.pieces() == second.pieces()
        tokens = tokenised(first, 2000)
        assert first.build(tokens, 2000, 2) == second.build(tokens, 2000, 2)


@pytest.mark.parametrize("script", every_script(), ids=lambda script: script.label)
def test_the_variants_of_a_point_share_their_beginning(script: Script) -> None:
    tokens = tokenised(script, 4300)
    first = script.build(tokens, 4300, 0)
    assert all(common(first, script.build(tokens, 4300, variant)) >= 3600 for variant in (1, 2, 3))


@pytest.mark.parametrize("name", ["prose", "code", "random", "far-copy"])
def test_too_little_filler_is_not_made_up(name: str) -> None:
    for script in scripts([name], NEEDS):
        tokens = tokenised(script, 1024)
        with pytest.raises(Unanswered, match="filler: has 1024 tokens, "):
            script.build(tokens, 4300, 0)


def test_the_arms_by_name() -> None:
    assert tuple(ARMS) == (
        "repeat", "repeat-wide", "repeat-long", "far-copy", "code", "chat", "prose", "random", "verbatim",
    )  # fmt: skip
    assert [s.label for s in scripts(DEFAULT, NEEDS)] == ["repeat", "far-copy near", "far-copy far", "prose"]
    assert [s.label for s in scripts(["prose", "repeat", "prose"], NEEDS)] == ["prose", "repeat"]
    assert {script.label for script in every_script() if script.copies} == {
        "repeat", "repeat-wide", "repeat-long", "far-copy near", "far-copy far",
    }  # fmt: skip
    assert all(arm.about and "\n" not in arm.about for arm in ARMS.values())


def test_verbatim_has_no_ladder() -> None:
    assert not ARMS["verbatim"].ladder
    assert scripts(["verbatim"], replace(NEEDS, text="Hello")) == ()


# --- repetition --------------------------------------------------------------------------------------------


def test_the_founding_sentence_is_tiled() -> None:
    (script,) = scripts(["repeat"], NEEDS)
    assert script.pieces() == {"repeat": "The cat sat on the mat. "}
    tokens: dict[str, Ids] = {"repeat": (1, 2, 3, 4, 5)}
    assert script.build(tokens, 32, 0) == (1, 2, 3, 4, 5) * 6 + (1, 2)
    assert script.expected(tokens, 32, 0, 8) == (3, 4, 5, 1, 2, 3, 4, 5)
    # A fourth of the period less each time: 0, 1, 2 and 3 tokens.
    assert [len(script.build(tokens, 32, variant)) for variant in range(4)] == [32, 31, 30, 29]
    assert script.expected(tokens, 32, 3, 3) == (5, 1, 2)


@pytest.mark.parametrize("length", [64, 100, 128, 256])
@pytest.mark.parametrize("period", [1, 2, 7, 24])
def test_repeat_works_at_small_lengths_and_for_any_period(length: int, period: int) -> None:
    (script,) = scripts(["repeat"], NEEDS)
    tokens = {"repeat": tuple(range(period))}
    assert script.shortest(tokens) <= length
    prompts = [script.build(tokens, length, variant) for variant in range(4)]
    assert len(set(prompts)) == 4
    for variant, prompt in enumerate(prompts):
        assert len(prompt) >= 2 * period
        whole = prompt + script.expected(tokens, length, variant, 50)
        assert all(token == place % period for place, token in enumerate(whole))


def test_the_users_text_replaces_the_unit_byte_for_byte() -> None:
    (script,) = scripts(["repeat"], replace(NEEDS, text=" da\n\tda "))
    assert script.pieces() == {"text": " da\n\tda "}


def test_a_text_without_tokens_is_no_period() -> None:
    (script,) = scripts(["repeat"], replace(NEEDS, text=" "))
    with pytest.raises(Unanswered, match="has no tokens"):
        script.shortest({"text": ()})


@pytest.mark.parametrize(("ceiling", "period"), [(2, 24), (8, 24), (17, 51), (None, 48), (65, 195)])
def test_the_wide_period_is_three_draft_blocks(ceiling: int | None, period: int) -> None:
    (script,) = scripts(["repeat-wide"], replace(NEEDS, ceiling=ceiling))
    tokens = tokenised(script, 0)
    prompt = script.build(tokens, 2000, 0)
    assert prompt[period:] == prompt[:-period]
    assert len(set(itertools.pairwise(prompt))) >= 0.98 * period


@pytest.mark.parametrize(("window", "least", "most"), [(None, 500, 700), (2048, 500, 700), (256, 192, 192)])
def test_the_long_period_stays_inside_the_window(window: int | None, least: int, most: int) -> None:
    (script,) = scripts(["repeat-long"], replace(NEEDS, window=window))
    tokens = tokenised(script, 0)
    prompt = script.build(tokens, 4000, 0)
    period = next(p for p in range(100, 1000) if prompt[p:] == prompt[:-p])
    assert least <= period <= most
    assert script.shortest(tokens) <= 1000


# --- far copy ----------------------------------------------------------------------------------------------


def far_copy(needs: Needs) -> tuple[Script, Script]:
    near, far = scripts(["far-copy"], needs)
    return near, far


@pytest.mark.parametrize("variants", [1, 4, 9])
@pytest.mark.parametrize(
    ("window", "distance"), [(None, 512), (4096, 512), (2048, 512), (512, 256), (128, 64)]
)
def test_the_near_source_is_at_its_distance(window: int | None, distance: int, variants: int) -> None:
    near, _ = far_copy(replace(NEEDS, window=window, variants=variants))
    tokens = tokenised(near, 3000)
    for length in (near.shortest(tokens), 3000):
        for variant in range(variants):
            prompt = near.build(tokens, length, variant)
            follow = near.expected(tokens, length, variant, distance)
            assert follow
            whole = prompt + follow
            # From the cue's first token on, everything stood `distance` tokens earlier.
            cue = min(CUE, min(200, distance * 3 // 5) // 4)
            assert len(prompt) == length
            assert whole[length - cue :] == whole[length - cue - distance : -distance]


@pytest.mark.parametrize("ceiling", [None, 4, 8, 17])
def test_the_far_source_is_at_the_very_start(ceiling: int | None) -> None:
    _, far = far_copy(replace(NEEDS, ceiling=ceiling))
    tokens = tokenised(far, 16384)
    for variant in range(4):
        prompt = far.build(tokens, 16384, variant)
        cue = prompt[-CUE:]
        places = [place for place in range(16384 - CUE) if prompt[place : place + CUE] == cue]
        assert len(places) == 1
        assert places[0] <= 4 * 300
        follow = far.expected(tokens, 16384, variant, 129)
        assert follow == prompt[places[0] + CUE : places[0] + CUE + 129]


def test_near_and_far_use_different_passages() -> None:
    for seed in range(20):
        near, far = far_copy(replace(NEEDS, seed=seed))
        own = [name for name in near.pieces() if name.startswith("far-copy")]
        other = [name for name in far.pieces() if name.startswith("far-copy")]
        assert len(own) == len(other) == 4
        assert not set(own) & set(other)
    assert len({tuple(far_copy(replace(NEEDS, seed=seed))[0].pieces()) for seed in range(20)}) > 10


@pytest.mark.parametrize("variants", [4, 9])
def test_nothing_is_expected_after_the_passages_end(variants: int) -> None:
    """A block of 16 asks for 273 tokens, more than a passage holds: what comes then says nothing of copying."""
    for script in far_copy(replace(NEEDS, ceiling=16, variants=variants)):
        tokens = tokenised(script, 4096)
        for variant in range(variants):
            follow = script.expected(tokens, 4096, variant, 273)
            assert 150 <= len(follow) < 273
            # All of it stands in the passages, the filler not.
            passages = [tokens[name] for name in script.pieces() if name.startswith("far-copy")]
            assert any(follow == ids[at : at + len(follow)] for ids in passages for at in range(len(ids)))


@pytest.mark.parametrize("script", [s for s in every_script() if s.copies], ids=lambda script: script.label)
def test_the_cue_leads_to_one_place_only(script: Script) -> None:
    """What follows the prompt's last words anywhere else is what is expected."""
    tokens = tokenised(script, 4300)
    for variant in range(4):
        prompt = script.build(tokens, 4300, variant)
        end = prompt[-12:]
        after = script.expected(tokens, 4300, variant, 1)
        follows = {prompt[p + 12] for p in range(len(prompt) - 12) if prompt[p : p + 12] == end}
        assert follows == set(after)


# --- a chat ------------------------------------------------------------------------------------------------


def test_a_chat_is_asked_as_the_template_says_and_in_both_ways_of_thinking() -> None:
    modes = [
        (script.label, script.thinking) for script in scripts(["chat"], NEEDS) if isinstance(script, Question)
    ]
    assert modes == [("chat", None), ("chat thinking", True), ("chat plain", False)]
    assert "chat" not in DEFAULT


@pytest.mark.parametrize("length", [400, 4300])
def test_a_question_stands_whole_before_the_templates_tail(length: int) -> None:
    script = scripts(["chat"], NEEDS)[0]
    tokens = tokenised(script, 4300)
    assert script.head(tokens) == tokens["chat: head"]
    for variant, name in enumerate(("chat-1", "chat-2", "chat-3", "chat-4")):
        end = tokens["paragraph-break"] + tokens[name] + tokens["chat: tail"]
        prompt = script.build(tokens, length, variant)
        assert (len(prompt), prompt[-len(end) :]) == (length, end)
        assert prompt[: -len(end)] == tokens[FILLER][: length - len(end)]
        assert script.expected(tokens, length, variant, 50) == ()


def test_the_users_text_is_the_question() -> None:
    script = scripts(["chat"], replace(NEEDS, text="Why?", variants=2))[0]
    tokens: dict[str, Ids] = {
        "text": (7,), "paragraph-break": (8,), "chat: tail": (9,), FILLER: tuple(range(100, 200)),
    }  # fmt: skip
    assert script.build(tokens, 8, 0) == (100, 101, 102, 103, 104, 8, 7, 9)
    # Asked again after a token less: half of what may be dropped, an eighth and one.
    assert script.build(tokens, 8, 1) == (100, 101, 102, 103, 8, 7, 9)
    with pytest.raises(Unanswered, match="the question has no tokens"):
        script.shortest(tokens | {"text": ()})


@pytest.mark.parametrize(
    ("first", "second", "head", "tail"),
    [
        ((1, 2, 50, 51, 3, 4), (1, 2, 60, 3, 4), (1, 2), (3, 4)),
        ((50,), (60, 61), (), ()),  # a template that only joins messages
        ((1, 50), (1, 60), (1,), ()),
        # The same token before and after is counted once.
        ((1, 50, 1), (1, 60, 60, 1), (1,), (1,)),
        ((1, 1, 50, 1), (1, 60, 1), (1,), (1,)),
    ],
)
def test_what_stands_around_a_message(first: Ids, second: Ids, head: Ids, tail: Ids) -> None:
    assert around(first, second) == (head, tail)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, 2, 3), (1, 2, 3)),  # the message is not in it
        ((1, 2), (1, 5, 2)),
        ((), ()),
        # More than "amber" and the like can be: something else differs, as a clock or a second copy would.
        ((1, 50, 7, 7, 7, 7, 7, 7, 50, 2), (1, 60, 7, 7, 7, 7, 7, 7, 60, 2)),
    ],
)
def test_a_template_that_does_not_show_the_message(first: Ids, second: Ids) -> None:
    with pytest.raises(Unanswered, match="does not show a message as it is"):
        around(first, second)


# --- text to be continued ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["prose", "code", "random"])
def test_the_passage_at_the_end_is_the_same_at_every_length(name: str) -> None:
    (script,) = scripts([name], NEEDS)
    tokens = tokenised(script, 16384)
    tails = [script.build(tokens, length, 1)[-150:] for length in LENGTHS]
    assert len(set(tails)) == 1
    assert script.expected(tokens, 1024, 1, 100) == ()


def test_the_users_passage_stands_at_the_end_whole() -> None:
    text = "Once upon a time, in a town of three bridges,"
    (script,) = scripts(["prose"], replace(NEEDS, text=text))
    assert text in script.pieces().values()
    tokens = tokenised(script, 1024)
    own = tokens["text"]
    prompts = [script.build(tokens, 1024, variant) for variant in range(4)]
    assert prompts[0][-len(own) :] == own
    # The others end earlier in it.
    assert all(prompts[0][: len(prompt)] == prompt for prompt in prompts)
    assert len({len(prompt) for prompt in prompts}) == 4
    assert len(own) // 2 <= len(prompts[3]) - (1024 - len(own)) < len(own)


def test_a_long_text_of_the_user_needs_its_length() -> None:
    (script,) = scripts(["prose"], replace(NEEDS, text="word " * 3000))
    tokens = tokenised(script, 4096)
    assert script.shortest(tokens) >= 3000


def test_a_passage_without_tokens_is_no_passage() -> None:
    (script,) = scripts(["prose"], replace(NEEDS, text=" "))
    with pytest.raises(Unanswered, match="has no tokens"):
        script.shortest({"paragraph-break": (1,), "text": ()})


def test_random_words_differ_by_seed_and_variant() -> None:
    (first,), (second,) = scripts(["random"], NEEDS), scripts(["random"], replace(NEEDS, seed=8))
    drawn = [text for s in (first, second) for name, text in s.pieces().items() if name.startswith("random")]
    assert len(set(drawn)) == 8
    assert set(" ".join(drawn).split()) <= set(texts.read("words").split())


# --- filler ------------------------------------------------------------------------------------------------


def test_filler_never_tells_a_sentence_twice() -> None:
    text = filler(1, 800_000)
    assert 800_000 <= len(text) < 801_000
    assert text.isascii()
    told = re.split(r"(?<=[.?])\s+", text)
    assert len(told) == len(set(told)) > 6000
    sizes = sorted(len(sentence.split()) for sentence in told)
    assert sizes[len(sizes) // 10] <= 9
    assert sizes[len(sizes) * 9 // 10] >= 22
    assert 300 <= len(set(re.findall(r"[a-z]+", text.lower()))) <= 900
    assert "{" not in text
    assert "<" not in text


def test_filler_is_the_same_for_a_seed_and_nests() -> None:
    assert filler(5, 3000) == filler(5, 3000)
    assert filler(5, 9000).startswith(filler(5, 3000))
    assert filler(5, 3000)[:200] != filler(6, 3000)[:200]
    assert filler(5, 0) == ""


# --- the shipped texts -------------------------------------------------------------------------------------


def test_every_shipped_text_is_clean_and_its_own() -> None:
    files = {path.stem: path.read_bytes() for path in FOLDER.glob("*.txt")}
    assert sorted(files) == list(texts.names())
    for name, content in files.items():
        assert content.isascii(), name
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", content), name
        assert texts.digest(name) == hashlib.sha256(content).hexdigest()
    assert len({digest for _, digest in texts.digests(texts.names())}) == len(files)


def test_the_texts_have_the_sizes_that_the_arms_count_on() -> None:
    tokenizer = Tokenizer()
    sizes = {name: len(tokenizer(texts.read(name))) for name in texts.names()}
    assert all(sizes[f"far-copy-{n}"] >= 280 for n in range(1, 9))
    assert all(sizes[f"prose-{n}"] >= 200 for n in range(1, 5))
    assert all(60 <= sizes[f"chat-{n}"] <= 120 for n in range(1, 5))
    assert all(sizes[f"code-{n}"] >= 300 for n in range(1, 5))
    words = texts.read("words").split()
    assert len(words) == len(set(words)) > 800


def test_passages_share_no_long_run_of_words() -> None:
    """Nothing but the passage itself tells how it goes on."""
    seen: dict[tuple[str, ...], str] = {}
    prose = [name for name in texts.names() if not name.startswith(("code", "words", "repeat"))]
    for name in prose:
        words = re.findall(r"\w+", texts.read(name).lower())
        for start in range(len(words) - 4):
            assert seen.setdefault(tuple(words[start : start + 5]), name) == name


def test_the_digests_name_every_text_that_was_used() -> None:
    used = dict(digests(scripts(["repeat", "prose", "random"], NEEDS)))
    assert used["repeat"] == hashlib.sha256(b"The cat sat on the mat. ").hexdigest()
    assert used["prose-3"] == texts.digest("prose-3")
    assert {"prose-1", "prose-2", "prose-4", "random-1", "random-4", "paragraph-break"} < set(used)
    own = dict(digests(scripts(["prose"], replace(NEEDS, text="\N{SNOWMAN}"))))
    assert own["text"] == hashlib.sha256("\N{SNOWMAN}".encode()).hexdigest()


# --- outputs -----------------------------------------------------------------------------------------------

MAT = tuple(range(7)) * 20


@pytest.mark.parametrize(
    ("output", "expected", "share"),
    [
        ((1, 2, 3, 4), (1, 2, 3, 4), 1.0),
        ((1, 2, 3, 4), (1, 2, 3, 4, 5, 6), 1.0),
        ((1, 9, 3, 4), (1, 2, 3, 4), 0.75),  # a slip costs itself
        ((1, 3, 4, 5), (1, 2, 3, 4), 0.75),  # left out
        ((1, 9, 2, 3), (1, 2, 3, 4), 0.75),  # put in
        ((4, 3, 2, 1), (1, 2, 3, 4), 0.25),
        ((5, 6, 7, 8), (1, 2, 3, 4), 0.0),
        ((1, 2, 3, 4), (1, 2), 1.0),
        ((), (1, 2), 0.0),
        ((1, 2), (), 0.0),
        ((*MAT[:30], 99, *MAT[31:]), MAT, 139 / 140),
        ((5,) * 140, MAT, 20 / 140),
    ],
)
def test_share_that_follows(output: Ids, expected: Ids, share: float) -> None:
    assert outputs.follows(output, expected) == pytest.approx(share)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ((5,) * 57, "1 token, 57 times"),
        (tuple(range(8)) * 14, "8 tokens, 14 times"),
        (tuple(range(100, 140)) + (1, 2, 3) * 20, "3 tokens, 20 times"),  # 60 % of it
        (tuple(range(100, 142)) + (1, 2, 3) * 20, ""),  # less than 60 %
        (tuple(range(64)) * 4, "64 tokens, 4 times"),
        (tuple(range(65)) * 4, ""),  # longer than what counts as a circle
        (tuple(range(20)) * 3, ""),  # too few times
        ((1, 2, 3) * 5 + (1,), "3 tokens, 5 times"),
        (tuple(range(200)), ""),
        ((1, 1, 1, 1), "1 token, 4 times"),
        ((1, 1, 1), ""),
        ((), ""),
    ],
)
def test_outputs_that_go_in_a_circle(output: Ids, said: str) -> None:
    assert outputs.loop(output) == said
