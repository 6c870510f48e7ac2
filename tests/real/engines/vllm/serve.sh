#!/usr/bin/env bash
# serve.sh DIR PORT [vllm flags]: the server that setup.sh made, in the foreground, on 127.0.0.1. 2.8 GB of memory.
# Ready when /health answers 200, after 20 to 85 s.
set -euo pipefail
cd "${1:?usage: serve.sh DIR PORT [flags]}"
port=$2
shift 2
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 VLLM_CPU_KVCACHE_SPACE=1
export VLLM_CACHE_ROOT=$PWD/cache/vllm TORCHINDUCTOR_CACHE_DIR=$PWD/cache/inductor HF_HOME=$PWD/cache/hf XDG_CACHE_HOME=$PWD/cache/xdg
exec venv/bin/vllm serve models/tiny-bigram --host 127.0.0.1 --port "$port" --served-model-name tiny \
  --max-model-len 32768 --dtype bfloat16 --enforce-eager "$@"
