"""Every number that a verdict depends on, each with its source. There is no other place for one."""

from __future__ import annotations

from ddprobe.facts import CommitPoint

# --- samples ---------------------------------------------------------------------------------------------

MIN_STEPS = 64
"""Verify steps that a point needs. With 64, zero acceptance still leaves 4.7 % per token (rule of three), and a mean
of 2.0 in blocks of 8 is known to ± 0.33."""
MIN_TIMED_STEPS = 32
"""Timed steps that a step time needs."""
COPIES = 0.95
"""Least share of the output that follows the text to be copied: below it, the text was not the easy one."""

# --- what a mean commit says ------------------------------------------------------------------------------

DEAD = 1.5
"""Mean commit of repeated text at or below which the drafter does nothing, in blocks of 5 and more."""
DEAD_SHARE = 0.15
"""The same for smaller blocks, as a share of the drafts: public dead drafters stand between 0 and 0.02 (vllm#55605 0.02,
sglang#22315 0, lmdeploy#4991 0.004)."""
WORKS = 0.6
"""Share of the ceiling from which repeated text counts as drafted well; between dead and this it is half wired."""
EXPECTED = 0.85
"""Share of the ceiling that a sound DFlash drafter reaches on repeated text. A prior, not a guarantee."""
FLAT = 0.25
"""Conditional acceptances within this of each other are flat: no position is special."""
HARD = 2.0
"""Prose at or below it is hard for this drafter (public figures for prose in blocks of 8: 1.4 to 3), if it is also below
HARD_SHARE of repeated text."""
HARD_SHARE = 0.5
"""Share of repeated text's commit at the same length below which prose is hard beside it."""

# --- comparing two lengths --------------------------------------------------------------------------------

COLLAPSE = 0.75
"""A mean below this share of another, their intervals apart, is a collapse."""
SAME = 0.85
"""Prose that keeps this share of its commit has not decayed."""
STEEP = 0.5
"""Prose that keeps less than this share fell further than drafters trained on short text do (public: 0.5 to 0.85)."""
ONE_STEP = 0.75
"""A single pair of neighbouring lengths with more than this share of a whole fall is an edge, not a slope."""
SHORT = 2048
"""Longest context at which repeated text shows the drafter itself, before windows and position limits matter."""
EDGE_SLACK = 0.02
"""A limit this close to the end of an edge still explains it: prompts may be a few tokens shorter than asked."""
FROM_CACHE = 0.1
"""A prompt of which more than this share came from the prefix cache was served by it."""

# --- simulated acceptance ---------------------------------------------------------------------------------

SAME_REQUESTS = 3
"""Requests of unknown text that must give the same histogram before it is taken for forged."""
FAR_APART = 4.0
"""How many times longer one of their prompts must be than another: texts so far apart are no copies of each other."""
SAME_SHARES = 0.1
"""Two histograms of two neighbouring bins that differ by less are the same rule, not two texts."""

# --- sources ----------------------------------------------------------------------------------------------

CLAIM = 0.10
"""Share by which a stated mean may differ from the measured one (tok/s × step time against commit: ± 10 %)."""
ROUNDED = 0.02
"""A figure printed with two decimals differs by no more than that from what it stands for."""

# --- points from others: bare means, without intervals ---------------------------------------------------
# Starting values from a few dozen public figures, most of them on one text each. A share is (mean - 1) / (ceiling - 1).

ALIVE_SHARE = 0.5
"""Share of the drafts of repeated text from which a drafter works: figures of live ones stand between 0.53 and 1."""
HALVED = 0.5
"""Repeated text that keeps less than this part of its share at a greater length has collapsed (0.73 to 0.13, 1.0 to 0)."""
LEVEL = 0.9
"""Repeated text that keeps this part of its share at every length is level."""
BESIDE = 0.5
"""Another text below this part of repeated text's mean is hard beside it (1.94 against 7.6; 4.75 against 15.4)."""
NARROW = 1.25
"""An edge between two lengths that lie no farther apart than that is placed well enough to name what lies in it."""
SAME_PROMPTS = 0.05
"""Benchmarks whose prompts are on average this near each other in length sent the same ones, or as good as that."""
FEWEST_STEPS = 32
"""Verify steps of others from which "nothing right" is said at all: of drafts that are right once in ten steps, so many miss
in 3 cases of 100."""
HARDLY = 1.25
"""A mean at or below it beyond a limit that an error names: drafters past their last position keep 1.1 to 1.2."""
LIMIT_LINES = 4
"""Log lines on either side of such a limit."""
NEAR_ENOUGH = 16384
"""Tokens of context up to which log lines of nothing tell a dead drafter: beyond, its length may be why."""
LINES_OF_NOTHING = 16
"""Lines of a log, each of tens of steps, in which nothing is right: more than a short request's end."""
NOTHING_RIGHT = 1.05
"""A mean at or below it on text that nobody knows: the first draft is right in one step of twenty at most, and even hard
text gives 1.1 to 1.6. Public dead heads print 1.00 to 1.05 (vllm#55605, sglang#22315)."""
NOTHING_AT_BEST = 1.2
"""The highest single line of a log whose mean is that low: a line is a window of a few dozen steps, and jumps."""
SAME_RUN = 0.05
"""Two counts of verify steps this close are of one run."""
LIVING_FIRST = 0.3
"""Acceptance of the first position that a living drafter reaches on ordinary text (0.6 at 9 % overall, AEON#6)."""
SLOWER = 2.0
"""Step time at the longest length over that at the shortest from which it is an attention kernel's, on points without
spread (7.84 to 32.28 ms by 32k, omlx#2127; 6.5 times at 128k, sglang#39316)."""
LOG_LENGTHS = 3
"""Ranges of context that a decode log must show before its throughput says something of a slope."""
LOG_LINES = 2
"""Log lines that an acceptance figure needs: each is a window of 40 steps, or of ten seconds."""
FEW = 8
"""Log lines, or verify steps of a point, below which "nothing right" is said with low confidence."""
IDLE_LINES = 4
"""Decode lines without an acceptance figure from which they say something: one or two may have been shortened by whoever
pasted them."""
UNGRAPHED = 1.5
"""Step time without CUDA graphs over that with them, at like contexts, from which launches are what is waited for."""

# --- time -------------------------------------------------------------------------------------------------

DRIFT = 0.10
"""The first point once more at the end, moved by more than that: the machine or a state changed (63 against 94 ms;
82 against 133 to 140 ms in public reports)."""
ROOFLINE = 5.0
"""Step time that grows this many times faster than reading the KV cache would: the attention kernel, not the memory."""
GROWTH = 1.25
"""Growth of the step time over the ladder below which its slope is not worth a verdict."""
LINEAR = 0.9
"""R² of a straight line that may be called one."""
DROPPED = 1.25
"""Steps that took this many times as long later in the run (or at the beginning): no slope of that run counts."""
CLOCK_FELL = 0.95
"""Share of the highest clock of a run below which a card's clock fell meanwhile."""
FIXED = 5.0
"""Constant part of a step over the time that reading the weights takes, from which something else is waited for. Full
CUDA graphs bring public figures to 1.2 to 1.7 (11 to 13 ms beside 2.3 to 7.7), without them they are at 10 and more."""
KNEE = 0.25
"""A jump between two lengths counts where it is this share of a step before it."""
IDLE_GPU = 80.0
"""Percent of the time with any kernel running below which the GPU waits for something (DOMAIN's occupancy)."""
FEW_SMS = 0.2
"""Share of SM time with a warp on it below which a kernel uses a corner of the GPU (0.04 to 0.05 in serial attention)."""
IDLE_DRAM = 0.1
"""Share of cycles with memory moving data below which a step does not wait for bandwidth."""
SLOWEST_GPU = 864.0
"""GB/s of the slowest card in the table of data sheets (L40S): taken where the GPU's own figure is not known, because
it makes the roofline as high as it can be."""


def ceiling_of(point: CommitPoint, stated: int | None) -> int | None:
    """Most tokens that a step of this point can commit."""
    return point.ceiling if point.ceiling is not None else stated


def dead_below(ceiling: int | None) -> float:
    """The mean commit at or below which repeated text says "nothing right"."""
    return DEAD if ceiling is None else min(DEAD, 1 + DEAD_SHARE * (ceiling - 1))


def works_from(ceiling: int) -> float:
    """The mean commit from which repeated text counts as drafted well."""
    return WORKS * ceiling
