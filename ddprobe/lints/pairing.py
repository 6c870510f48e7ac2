"""Does this drafter belong to this target: widths, vocabularies, mask token, block size?"""

from __future__ import annotations

from ddprobe.engines import TABLE, sglang_reading
from ddprobe.lints.checkpoints import known
from ddprobe.lints.lint import (
    Judgement,
    blocks_on_sglang,
    drafter,
    drafts,
    drafts_blocks,
    fail,
    fine,
    lint,
    need,
    note,
    target,
    unknown,
    warn,
)
from ddprobe.lints.served import Served, beside_cite, config_cite

_PAIR = "drafter and target"
_PADDING = 1024  # equivalent: a whole number of steps
"""A vocabulary this much larger, in whole steps of 64, is the same one with padded rows."""


@lint(
    "DC07",
    "the drafter is as wide as the target",
    source="the draft borrows the target's embedding and lm_head; vllm#18906",
    subject=_PAIR,
    applies=drafts,
    aliases=("L17",),
)
def width(served: Served) -> Judgement:
    config, other = drafter(served), target(served)
    mine = need(config.hidden_size, "the drafter's hidden_size")
    theirs = need(other.hidden_size, "the target's hidden_size")
    cites = config_cite(config, "hidden_size"), config_cite(other, "hidden_size")
    if mine == theirs:
        return fine(f"hidden_size is {mine} on both sides", *cites)
    if served.family not in ("dflash", "dspark"):
        if config.target_hidden_size == theirs:
            return fine(
                f"hidden_size {mine} differs from the target's {theirs}, and target_hidden_size says so",
                *cites,
            )
        if served.family != "eagle":
            return note(
                f"hidden_size {mine} differs from the target's {theirs}; a draft model of its own may be narrower",
                "",
                *cites,
            )
    return fail(
        f"hidden_size {mine} differs from the target's {theirs}, whose embedding and lm_head the drafter borrows",
        "use the drafter of this target",
        *cites,
    )


@lint(
    "DC08",
    "drafter and target share a vocabulary",
    source="srt/speculative/draft_worker_common.py:107-109; EAGLE#249, vllm#55133, beellama#51",
    subject=_PAIR,
    applies=drafts,
    aliases=("L18",),
)
def vocabulary(served: Served) -> Judgement:
    config, other = drafter(served), target(served)
    theirs = need(other.vocab_size, "the target's vocab_size")
    cites = config_cite(config, "vocab_size"), config_cite(other, "vocab_size")
    mine = config.vocab_size
    if mine is None:
        return fine(f"the drafter states no vocab_size and borrows the target's {theirs}", *cites)
    if mine == theirs:
        return fine(f"vocab_size is {mine} on both sides", *cites)
    if abs(mine - theirs) < _PADDING and mine % 64 == 0 and theirs % 64 == 0:
        if mine > theirs:  # equivalent: they are not equal
            return fine(
                f"vocab_size {mine} is the target's {theirs} with {mine - theirs} rows of padding", *cites
            )
        return warn(
            f"vocab_size {mine} is {theirs - mine} below the target's {theirs}: right only if those rows are padding",
            "compare the two tokenizers",
            *cites,
        )
    return fail(
        f"vocab_size {mine} differs from the target's {theirs}: token ids mean different words",
        "use a drafter that was trained with the target's tokenizer",
        *cites,
    )


@lint(
    "DC09",
    "the mask token is a token of its own",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1391-1471; Automodel#2461, sglang#27924",
    subject=_PAIR,
    applies=drafts_blocks,
    aliases=("L19",),
)
def mask_token(served: Served) -> Judgement:
    config = drafter(served)
    other = served.target
    mask, cite = config.mask_token_id, config_cite(config, "mask_token_id")
    published = known(config, served.arg("speculative_draft_model_path"))
    card = f"{published.mask_token_id} for {published.name}" if published and published.mask_token_id else ""
    right = f"set dflash_config.mask_token_id to the id on the model card{f' ({card})' if card else ''}"
    if mask is None:
        if not served.on_sglang:
            need(None, "the drafter's mask_token_id")
        if config.mask_token and served.family == "dflash":
            return warn(
                f"mask_token_id is absent: SGLang looks {config.mask_token!r} up in the target's tokenizer, "
                "and takes the next free id if it is not there",
                right,
                config_cite(config, "mask_token"),
            )
        made_up = f"takes the id of {sglang_reading.DEFAULT_MASK_TOKEN!r}, or the next free one"
        then = "raises" if served.family == "dspark" else made_up
        return fail(f"mask_token_id is absent (1 id is needed): SGLang {then}", right, cite)
    vocabulary = other.vocab_size if other is not None else None
    if vocabulary is not None and mask >= vocabulary:
        return fail(
            f"mask_token_id {mask} lies outside the target's vocabulary of {vocabulary}: the server raises",
            right,
            cite,
            config_cite(other, "vocab_size"),
        )
    for name, taken in _taken_ids(served):
        if mask == taken:
            return fail(f"mask_token_id {mask} is also the {name}", right, cite)
    if published and published.mask_token_id not in (None, mask):
        return fail(f"mask_token_id {mask} is not the published {card}", right, cite)
    vocabulary = need(vocabulary, "the target's vocab_size")
    special = (other.special_token_ids if other is not None else None) or ()
    tokens = beside_cite(other, "$.added_tokens_decoder")
    # Most tokenizers add their special tokens behind the ordinary ones; a few have some of them in front.
    behind = [each for each in special if each > vocabulary // 2]
    if behind and mask < min(behind) and mask not in special:
        return warn(
            f"mask_token_id {mask} is ordinary text: the target's special tokens begin at {min(behind)}",
            right,
            cite,
            tokens,
        )
    if not behind and mask not in special and not (published and published.mask_token_id == mask):
        lists = (
            f"lists {len(special)} added tokens, and not this one"
            if special
            else ("lists no added tokens or was not read")
        )
        return unknown(
            f"mask_token_id {mask} lies within the vocabulary of {vocabulary}; whether it is ordinary text is not "
            f"known, because the target's tokenizer_config.json {lists}",
            "look the id up in the target's tokenizer",
            cite,
        )
    return fine(
        f"mask_token_id {mask} lies within the vocabulary of {vocabulary} and is no ordinary text", cite
    )


def _taken_ids(served: Served) -> list[tuple[str, int]]:
    """Ids that a mask token must not share."""
    found: list[tuple[str, int]] = []
    for side, config in (("drafter's", served.drafter), ("target's", served.target)):
        if config is not None:
            named = [("pad token", config.pad_token_id), ("begin-of-sequence token", config.bos_token_id)]
            named += [("end-of-sequence token", each) for each in config.eos_token_ids]
            found += [(f"{side} {name}", value) for name, value in named if value is not None]
    return found


@lint(
    "DC10",
    "a trained mask embedding beside the drafter is used",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:1318-1378; sglang#27924 (1.42 against 6.30)",
    subject="drafter",
    applies=blocks_on_sglang,
    aliases=("L19",),
)
def mask_embedding(served: Served) -> Judgement:
    config = drafter(served)
    if not config.files:
        need(None, "what lies beside the drafter's config.json")
    cites = beside_cite(config, "files")
    if "mask_embedding.pt" not in config.files:
        return fine("no mask_embedding.pt lies beside the drafter's config.json", cites)
    if "/snapshots/" in config.path and config.reference[:1] not in ("", "/", ".", "~"):
        return warn(
            f"mask_embedding.pt lies beside the drafter, but it is served as the hub id {config.reference}: SGLang "
            "merges it from a local folder only (0 of 1 files merged)",
            f"pass --speculative-draft-model-path {config.path.rsplit('/', 1)[0]}, and look for "
            '"Merged trained mask embedding" in the log',
            cites,
        )
    return fine("mask_embedding.pt lies beside the drafter, which is served as a folder", cites)


@lint(
    "DC11",
    "the block size served is the one trained",
    source="sglang 0.5.23 srt/speculative/dflash_worker_v2.py:507-519, srt/arg_groups/speculative_hook.py:389-425; "
    "lmdeploy#4789, sglang#18387, sglang#23553",
    subject="drafter and launch",
    applies=lambda served: drafts_blocks(served) and served.family == "dflash",
    aliases=("L20", "L21"),
)
def block_size(served: Served) -> Judgement | None:
    config = drafter(served)
    cites = config_cite(config, "block_size")
    places = dict(config.block_size_places)
    if len(set(places.values())) > 1:
        said = ", ".join(f"{place} = {value}" for place, value in places.items())
        return fail(
            f"block_size is stated {len(places)} times and differs: {said}; SGLang takes {config.block_size}",
            "leave one of them, the one it was trained with",
            cites,
        )
    if not served.arguments_known:
        return None
    name = "num_speculative_tokens" if served.engine == "vllm" else "speculative_num_draft_tokens"
    tokens = served.number(name)
    if served.engine == "sglang" and served.asked_block_size() != tokens:
        name = "speculative_dflash_block_size"
        tokens = served.asked_block_size()
    trained = config.block_size
    if tokens is None:
        if trained is None and served.engine == "sglang":
            default = sglang_reading.DEFAULT_BLOCK_SIZE
            return warn(
                f"neither config.json nor the command line states a block size: SGLang takes {default}",
                "pass --speculative-num-draft-tokens with the trained block size",
                cites,
            )
        block = need(trained, "the drafter's block_size")
        return fine(f"the block size is taken from config.json: {block}", cites)
    block = need(trained, "the drafter's block_size")
    proposed = tokens + 1 if served.engine == "vllm" else tokens
    cites += served.arg_cite(name)
    flag = TABLE[served.engine].flag(name) if served.engine in TABLE else name
    if proposed > block:
        return fail(
            f"{flag} {tokens} asks for blocks of {proposed}, more than the trained block_size {block}",
            f"set {flag} {tokens - (proposed - block)}",
            cites,
        )
    if proposed < block:
        return note(
            f"{flag} {tokens} asks for blocks of {proposed}, shorter than the trained block_size {block}",
            "legal, and often faster on mixture-of-experts targets; compare both",
            cites,
        )
    return fine(f"blocks of {proposed}, as trained", cites)


@lint(
    "DC12",
    "DSpark verifies gamma + 1 tokens",
    source="sglang 0.5.23 srt/arg_groups/fields/spec.py:78-81, srt/arg_groups/speculative_hook.py:808-843",
    subject="drafter and launch",
    applies=lambda served: (
        served.on_sglang
        and served.family == "dspark"
        and served.arguments_known
        and (served.drafter is not None or served.number("speculative_dspark_block_size") is not None)
    ),
)
def dspark_window(served: Served) -> Judgement:
    config = served.drafter
    asked = served.number("speculative_dspark_block_size")
    gamma = asked if asked is not None else drafter(served).dspark_gamma
    cites = (
        served.arg_cite("speculative_dspark_block_size")
        if asked is not None
        else config_cite(config, "block_size")
    )
    tokens = served.number("speculative_num_draft_tokens")
    if gamma is None:
        taken = tokens - 1 if tokens is not None else sglang_reading.DEFAULT_DSPARK_GAMMA
        return warn(
            f"gamma is stated neither in config.json nor on the command line: SGLang takes {taken}",
            "pass --speculative-dspark-block-size with the trained gamma",
            cites,
        )
    if tokens is None:
        return fine(f"gamma {gamma}: SGLang verifies {gamma + 1} tokens", cites)
    cites += served.arg_cite("speculative_num_draft_tokens")
    if tokens != gamma + 1:
        return fail(
            f"--speculative-num-draft-tokens {tokens} is not gamma + 1 = {gamma + 1}: the server raises",
            f"drop it and set --speculative-dspark-block-size {gamma}",
            cites,
        )
    return fine(f"--speculative-num-draft-tokens {tokens} is gamma {gamma} + 1", cites)


LINTS = (
    width,
    vocabulary,
    mask_token,
    mask_embedding,
    block_size,
    dspark_window,
)
