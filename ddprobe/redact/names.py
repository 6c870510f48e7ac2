"""Which names denote secrets, and which environment variables are kept: the redaction policy on one page.

A name is judged by its last words (`ssl_keyfile_password`, `X-Api-Key`, `HF_TOKEN`), never by containing one:
in this field "token" is the unit of measurement (`max_tokens`, `mask_token`, `time_to_first_token`).
"""

from __future__ import annotations

import re
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[A-Za-z0-9]+")
_COUNTER = re.compile(r"\d{1,3}\Z")

# Secret as the last word, whatever stands before it.
_ALWAYS = frozenset(
    "password passwd passphrase secret authorization cookie credential bearer apikey secretkey accesskey "
    "privatekey authtoken accesstoken hftoken sshpass".split()
)
_GLUED = re.compile(r".*(password|passwd|passphrase|apikey|secretkey)\Z")  # PGPASSWORD, myapikey

# Secret as the last word only after one of these.
_KEY_OF = frozenset(
    "api access secret private auth account admin master signing signature encryption license licence service "
    "storage deploy shared session ssh subscription watermark root decryption hmac".split()
)
_TOKEN_OF = frozenset(
    "access admin anthropic api auth azure bearer client csrf deploy face gh github gitlab hf hub "
    "huggingface id identity jupyter login modelscope ngc npm oauth openai personal private pypi refresh "
    "registry secret security service session slack user vault wandb webhook xsrf".split()
)
_PASS_OF = frozenset("admin db http login mysql pg proxy redis root smtp ssh ssl user".split())

# An upper-case NAME_TOKEN is an environment variable, and secret unless it names a token of a vocabulary.
_VOCABULARY = frozenset(
    "bos bonus cache cls draft drafter end eos eot first image last mask max min new next num output pad "
    "per prompt sep special start stop think tokens unk verify video audio".split()
)

SHORT_OPTIONS = frozenset({"-hft"})
"""Options whose name gives nothing away: llama.cpp's `-hft TOKEN`."""

HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token"}
)


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a value under this name must not be kept."""
    if name.lower() in SHORT_OPTIONS:
        return True
    words = [word.lower() for word in _WORD.findall(_CAMEL.sub("_", name))]
    if len(words) > 1 and (_COUNTER.match(words[-1]) or (words[-1] in ("a", "b") and words[-2] == "key")):
        words.pop()  # OPENAI_API_KEY_2, watermark_key_b
    if not words:
        return False
    last = words[-1].rstrip("0123456789")
    before = words[-2] if len(words) > 1 else ""
    if last in ("passwords", "secrets", "cookies", "credentials") or (last == "keys" and before in _KEY_OF):
        last = last[:-1]
    if last in _ALWAYS or _GLUED.match(last):
        return True
    if last == "key":
        return before in _KEY_OF
    if last == "token":
        return before in _TOKEN_OF or (name.isupper() and bool(before) and before not in _VOCABULARY)
    return last in ("pass", "pwd") and before in _PASS_OF


_KEPT_PREFIXES = (
    "SGLANG_", "SGL_", "VLLM_", "LLAMA_ARG_", "GGML_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "NVIDIA_", "NVSHMEM_",
    "TORCH", "PYTORCH_", "TRITON_", "FLASHINFER_", "DEEPEP_", "DG_", "OPTION_", "SM_VLLM_", "OMP_", "MKL_", "UCX_", "GLOO_", "LC_",
)  # fmt: skip
_KEPT_NAMES = frozenset(
    "HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_HUB_OFFLINE TRANSFORMERS_CACHE TRANSFORMERS_OFFLINE "
    "MODELSCOPE_CACHE XDG_CACHE_HOME HOME PATH PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX "
    "CONDA_DEFAULT_ENV LD_LIBRARY_PATH LD_PRELOAD HOSTNAME USER LOGNAME PWD SHELL LANG TMPDIR container "
    "TOKENIZERS_PARALLELISM RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR MASTER_PORT".split()
)


@lru_cache(maxsize=4096)
def is_kept_variable(name: str) -> bool:
    """Whether this environment variable's value is evidence: on the allow-list, and no secret by name."""
    return (name in _KEPT_NAMES or name.startswith(_KEPT_PREFIXES)) and not is_secret(name)
