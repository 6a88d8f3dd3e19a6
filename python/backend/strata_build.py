# SPDX-License-Identifier: Apache-2.0
"""Wheels, for pip (PEP 517) and for `make wheel`: this tree's build, zipped.

    pip install ./python                            in a checkout
    python strata_build.py BUILD DESTINATION        of a build that is configured
    python strata_build.py --split WHEEL DESTINATION

The last takes oneDNN out of a wheel that `auditwheel repair` has filled with the system's
libraries: it is most of it, and becomes a wheel of its own whose files join the others.

STRATA_BUILD names a configured build to take; else the checkout's own is made, in
_build/wheel, without CUDA and the pages. The build has the files of the package in
python/tree after `make wheel-tree`, as they lie when they are installed.
"""
from __future__ import annotations

import base64
import hashlib
import os
import stat
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
METADATA = """Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
License: Apache-2.0
Requires-Python: >=3.11
"""
SUMMARY = "Neural-network inference whose layers are plugins"
EXTRAS = """Provides-Extra: cuda13
Requires-Dist: strata-cuda13 (=={version}); extra == "cuda13"
Provides-Extra: onednn
Requires-Dist: strata-onednn (=={version}); extra == "onednn"
"""
JOINS = "Requires-Dist: strata (=={version})\n"
CUDA = JOINS + """\
Requires-Dist: nvidia-cuda-runtime (<14,>=13)
Provides-Extra: cublas
Requires-Dist: nvidia-cublas (<14,>=13); extra == "cublas"
Provides-Extra: cudnn
Requires-Dist: nvidia-cudnn-cu13 (<10,>=9); extra == "cudnn"
Provides-Extra: nvrtc
Requires-Dist: nvidia-cuda-nvrtc (<14,>=13); extra == "nvrtc"
"""
WHEEL = """Wheel-Version: 1.0
Generator: strata_build
Root-Is-Purelib: false
Tag: {tag}
"""


def run(*command: str | Path, cwd: Path) -> None:
    subprocess.run([str(word) for word in command], cwd=cwd, check=True, stdout=sys.stderr)


def jobs() -> str:
    return f"-j{len(os.sched_getaffinity(0))}"


def configured_build() -> Path:
    """Where configure has run for Python."""
    given = os.environ.get("STRATA_BUILD")
    if given:
        return Path(given).resolve()
    if not (TOP / "configure").exists():
        run("./bootstrap", cwd=TOP)
    build = TOP / "_build" / "wheel"
    if not (build / "config.status").exists():
        build.mkdir(parents=True, exist_ok=True)
        run(TOP / "configure", "--enable-python", "--with-cuda=no", f"PYTHON={sys.executable}",
            "--prefix=/usr", "--libdir=/usr/lib", cwd=build)
    return build


def made_tree(build: Path) -> Path:
    """The package's files, everything of it built."""
    run("make", "-s", jobs(), "wheel-tree", cwd=build)
    return build / "python" / "tree"


def version_of(build: Path) -> str:
    for line in (build / "config.h").read_text().splitlines():
        if line.startswith("#define PACKAGE_VERSION "):
            return line.split('"')[1]
    raise SystemExit(f"{build}/config.h has no PACKAGE_VERSION")


def platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def host_tag() -> str:
    return f"cp311-abi3-{platform()}"


class Wheel:
    """A zip file with a record of what is in it, the same bytes for the same files."""

    def __init__(self, path: Path, folder: str) -> None:
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = f"{folder}/RECORD"
        self.lines: list[str] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        info = zipfile.ZipInfo(name)
        info.external_attr = (stat.S_IFREG | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.lines.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self) -> None:
        self.zip.writestr(zipfile.ZipInfo(self.record),
                          "".join(self.lines) + f"{self.record},,\n")
        self.zip.close()


def host_metadata(version: str) -> str:
    return (METADATA + EXTRAS).format(name="strata", version=version, summary=SUMMARY)


def write_metadata(folder: Path, version: str) -> None:
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(host_metadata(version))
    (folder / "WHEEL").write_text(WHEEL.format(tag=host_tag()))


def zip_tree(tree: Path, destination: Path, name: str, metadata: str, tag: str) -> str:
    """name: the distribution's with its version."""
    folder = f"{name}.dist-info"
    destination.mkdir(parents=True, exist_ok=True)
    wheel = Wheel(destination / f"{name}-{tag}.whl", folder)
    for path in sorted(p for p in tree.rglob("*") if p.is_file()):
        wheel.add(str(path.relative_to(tree)), path.read_bytes(),
                  0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    wheel.add(f"{folder}/METADATA", metadata.encode())
    wheel.add(f"{folder}/WHEEL", WHEEL.format(tag=tag).encode())
    wheel.add(f"{folder}/licenses/LICENSE", (TOP / "LICENSE").read_bytes())
    wheel.close()
    return f"{name}-{tag}.whl"


def write_wheel(build: Path, destination: Path) -> str:
    version = version_of(build)
    return zip_tree(made_tree(build), destination, f"strata-{version}", host_metadata(version),
                    host_tag())


def write_cuda_wheel(build: Path, destination: Path) -> str | None:
    """Of a build with CUDA whose trees are made: what joins the package's files."""
    version, tree = version_of(build), build / "python" / "tree-cuda"
    if not tree.exists():
        return None
    metadata = METADATA.format(name="strata-cuda13", version=version,
                               summary="Strata's layers for NVIDIA GPUs")
    return zip_tree(tree, destination, f"strata_cuda13-{version}",
                    metadata + CUDA.format(version=version), f"py3-none-{platform()}")


# ---- oneDNN of a repaired wheel ------------------------------------------------------------

def is_onednn(name: str) -> bool:
    """The plugin, and the libraries that it alone needs."""
    return Path(name).name == "onednn.so" or Path(name).name.startswith(("libdnnl", "libOpenCL"))


def split_wheel(path: Path, destination: Path) -> list[str]:
    _, version, tag = path.stem.split("-", 2)
    parts = {"strata": host_metadata(version),
             "strata_onednn": (METADATA + JOINS).format(
                 name="strata-onednn", version=version, summary="Strata's layers by oneDNN")}
    destination.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path) as whole:
        for part, metadata in parts.items():
            folder = f"{part}-{version}.dist-info"
            wheel = Wheel(destination / f"{part}-{version}-{tag}.whl", folder)
            for info in whole.infolist():
                if info.is_dir() or ".dist-info/" in info.filename:
                    continue
                if is_onednn(info.filename) == (part != "strata"):
                    wheel.add(info.filename, whole.read(info), info.external_attr >> 16 & 0o777)
            for name in "METADATA", "WHEEL", "licenses/LICENSE":
                text = whole.read(f"strata-{version}.dist-info/{name}")
                wheel.add(f"{folder}/{name}", metadata.encode() if name == "METADATA" else text)
            wheel.close()
    return [f"{part}-{version}-{tag}.whl" for part in parts]


# ---- PEP 517 -----------------------------------------------------------------------------

def build_wheel(wheel_directory: str, config_settings: object = None,
                metadata_directory: object = None) -> str:
    return write_wheel(configured_build(), Path(wheel_directory))


def prepare_metadata_for_build_wheel(metadata_directory: str,
                                     config_settings: object = None) -> str:
    version = version_of(configured_build())
    write_metadata(Path(metadata_directory) / f"strata-{version}.dist-info", version)
    return f"strata-{version}.dist-info"


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    raise NotImplementedError("sources are released as Autotools makes them: make dist")


def main(words: list[str]) -> None:
    destination = Path(words[-1])
    if words[0] == "--split":
        written: list[str | None] = [*split_wheel(Path(words[1]), destination)]
    else:
        build = Path(words[0]).resolve()
        written = [write_wheel(build, destination), write_cuda_wheel(build, destination)]
    print("\n".join(name for name in written if name))


if __name__ == "__main__":
    main(sys.argv[1:])
