#!/usr/bin/env bash
# setup.sh DIR: a real SGLang 0.5.23 for the CPU under DIR: its own venv, and tiny models that it makes. For tests only.
# Needs python3.11, and g++ for n-gram speculation. 2 to 6 minutes, 390 MB to download, 2.8 GB on disk.
# Not stock: the compiled CPU operators, which are on no registry, are plain torch (shim/sgl_kernel), a plugin lets
# DFLASH start on a CPU (shim/sglang_cpu_shim.py), and torchvision is made importable. Scheduler, HTTP server, drafting
# and verifying workers, metrics and log are SGLang's own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: setup.sh DIR}"
cd "$1"

# Set up once, and again when what it is made from has changed.
want=$(cd "$here" && find . -type f ! -path '*/__pycache__/*' ! -name serve.sh -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
if [ -f ready ] && [ "$(cat ready)" = "$want" ]; then
  exit 0
fi
rm -rf venv shim models ready

python3.11 -m venv venv
install=(venv/bin/pip --disable-pip-version-check --no-input -q install --no-cache-dir --progress-bar off)
"${install[@]}" -r "$here/requirements.txt"
"${install[@]}" --no-deps torchvision==0.28.0 sglang==0.5.23
venv/bin/python "$here/patch_torchvision.py"
cp -r "$here/shim" shim
"${install[@]}" --no-deps ./shim
TQDM_DISABLE=1 HF_HUB_DISABLE_PROGRESS_BARS=1 venv/bin/python "$here/make_models.py" models
printf '%s' "$want" >ready
