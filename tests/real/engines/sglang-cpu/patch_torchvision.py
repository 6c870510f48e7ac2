"""Lets torchvision be imported beside a torch for the CPU: PyPI's is built for CUDA, its `_C.so` does not load.

Two operators are then unknown, and what registers their stand-ins fails at import. SGLang uses neither.
"""

import sysconfig
from pathlib import Path

MARK = "# The rest is left out: it needs torchvision._C.\n"
path = Path(sysconfig.get_paths()["purelib"]) / "torchvision" / "_meta_registrations.py"
source = path.read_text()
if MARK not in source:
    kept, found, _ = source.partition('@torch.library.register_fake("torchvision::nms")')
    if not found:
        raise SystemExit(f"{path} is not the file it was")
    path.write_text(kept + MARK)
