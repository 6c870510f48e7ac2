#!/usr/bin/env bash
# serve.sh DIR MODE PORT [sglang flags]: the server that setup.sh made, in the foreground, on 127.0.0.1.
# MODE: plain, ngram, standalone or dflash. Ready when /model_info answers 200, after 20 to 95 s.
set -euo pipefail
cd "${1:?usage: serve.sh DIR MODE PORT [flags]}"
mode=$2 port=$3
shift 3
export SGLANG_USE_CPU_ENGINE=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1 NO_COLOR=1
export PATH=$PWD/venv/bin:$PATH
case $mode in
  plain) how=(--attention-backend torch_native --disable-overlap-schedule) ;;
  ngram) how=(--attention-backend intel_amx --speculative-algorithm NGRAM --speculative-num-draft-tokens 8) ;;
  standalone)
    how=(--attention-backend intel_amx --speculative-algorithm STANDALONE
      --speculative-draft-model-path models/tiny-qwen3-draft
      --speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4)
    ;;
  dflash)
    how=(--attention-backend intel_amx --disable-overlap-schedule
      --speculative-algorithm DFLASH --speculative-draft-model-path models/tiny-dflash)
    ;;
  *)
    echo "unknown mode $mode" >&2
    exit 2
    ;;
esac
exec venv/bin/python -m sglang.launch_server --device cpu --model-path models/tiny-qwen3 --served-model-name tiny-qwen3 \
  --host 127.0.0.1 --port "$port" --sampling-backend pytorch --cuda-graph-backend-decode disabled \
  --cuda-graph-backend-prefill disabled --max-total-tokens 8192 --grammar-backend none --enable-metrics \
  --decode-log-interval 4 --sleep-on-idle "${how[@]}" "$@"
