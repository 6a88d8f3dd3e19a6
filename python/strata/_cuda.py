"""CUDA's libraries as NVIDIA's packages have them, where the system's loader does not look."""

from __future__ import annotations

import os

_LIBRARIES = ("libcudart.so.13", "libcublasLt.so.13", "libcudnn.so.9")
_FOLDERS = ("cu13", "cuda_runtime", "cublas", "cudnn")


def folders() -> list[str]:
    """Those of the packages that are installed."""
    from importlib.util import find_spec

    spec = find_spec("nvidia")
    places = (spec and spec.submodule_search_locations) or ()
    found = (os.path.join(place, name, "lib") for place in places for name in _FOLDERS)
    return [folder for folder in found if os.path.isdir(folder)]


def load() -> None:
    """Before the device module and plugins, which then find them by name. What is not there
    may be the system's; else the loader says what is missing."""
    import ctypes

    for folder in folders():
        for name in _LIBRARIES:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                ctypes.CDLL(path)


def environment() -> dict[str, str]:
    """Of a process that is to find them."""
    own = os.environ.get("LD_LIBRARY_PATH")
    path = os.pathsep.join([*([own] if own else []), *folders()])
    return {**os.environ, "LD_LIBRARY_PATH": path} if path else dict(os.environ)
