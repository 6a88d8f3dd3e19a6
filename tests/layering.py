# SPDX-License-Identifier: Apache-2.0
"""TAP: the house stands as docs/architecture.md says. For check-layering.sh.

    layering.py SOURCE BUILD

Includes are read from the sources, calls from the objects of the build: a prototype can be
repeated without an include. A room is a folder; a sub-room named here is one with rules of
its own. The rooms' READMEs say what they may use in the words of this table.
"""
import os
import re
import subprocess
import sys

BEFORE_ENGINE = "core formats registry io ini network planner"
# Room: rooms it may use, beside itself and include/strata.
MAY_USE = {
    "core": "",
    "formats": "core",
    "registry": "core formats",
    "io": "core formats",
    "ini": "core formats io",
    "network": "core formats registry io ini",
    "planner": "core formats registry io ini network",
    "planner/solver": "core io",
    "planner/certificate": "core planner/solver",
    "engine": BEFORE_ENGINE,
    "check": BEFORE_ENGINE + " engine",
    "calibrate": BEFORE_ENGINE + " engine",
    "language": "core io",
    "tools": BEFORE_ENGINE + " engine check calibrate language",
    "kernels": "core formats",
    "plugins": "kernels",
}
# Where a room may see some headers of another and no more.
MAY_SEE = {
    ("planner/certificate", "planner/solver"): {"planner/solver/problem.h"},
    ("planner/solver", "io"): {"io/stream.h"},
    # The last ones are compiled into the CUDA module, too: calls alone.
    ("kernels", "core"): {"core/status.h", "core/device.h", "core/alloc.h",
                          "core/tensor.h"},
    ("kernels", "formats"): {"formats/reformat/kernels.h", "formats/reformat/check.h",
                             "formats/reformat/shape.h"},
    ("plugins", "kernels"): {"kernels/activate.cuh", "kernels/beside.cuh",
                             "kernels/counting.cuh", "kernels/element.cuh",
                             "kernels/layer.cuh",
                             "kernels/overlap.cuh", "kernels/shared.cuh",
                             "kernels/walk.cuh"},
}
PLUGIN_HEADERS = {"strata/plugin.h", "strata/layers.h", "strata/half.h", "strata/narrow.h",
                  "strata/cuda.h"}
PLUGIN_HEADER_FOLDER = "strata/layers/"  # what layers.h includes
# What uses rooms and is used by none.
OUTSIDE = {"tests", "fuzz", "bench", "examples", "python", "serving"}
# What Python's checker of layers, an extension of its own, sees of the rooms.
CHECKER = {"check/check.h", "check/rules.h"}
# Layers made of others, whose headers they see.
MADE_OF = {"deconvolution": ["convolution"], "pooled_convolution": ["convolution"],
           "projection": ["matrix_multiply"], "shortcut_convolution": ["convolution"],
           "quantized_attention": ["attention"],
           "self_attention": ["attention", "matrix_multiply"]}
CORE_LINES = 4000
FOLDER_FILES = 25
# A file a layer, whose name says which: it grows with the layers.
CATALOGUES = {"tests/plugins"}
SOURCE_NAMES = (".c", ".h", ".cu", ".cuh")
NOT_COMPILED = "tools/new_layer/templates/"


def room_of(path):
    """The innermost room of a file, or None."""
    rooms = [r for r in MAY_USE if path.startswith(r + "/")]
    return max(rooms, key=len, default=None)


def sources(room):
    for folder, _, names in os.walk(room):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.endswith(SOURCE_NAMES) and room_of(path) == room:
                yield path


def allowed(room, other, header=None):
    if other == room:
        return True
    use = MAY_USE[room].split()
    # A room's outer room sees into it, as into any of its files.
    if other not in use and other.split("/")[0] not in use + [room]:
        return False
    seen = MAY_SEE.get((room, other))
    return seen is None or header is None or header in seen


# ---- includes ----------------------------------------------------------------------------

def includes(path):
    """Line numbers and headers, as paths from the root of the tree."""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            found = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if found:
                beside = os.path.join(os.path.dirname(path), found.group(1))
                name = beside if os.path.exists(beside) else found.group(1)
                yield number, os.path.normpath(name)


def own_layer(path, header):
    """A plugin sees its own layer's folder, that of what it is made of, and plugins/common."""
    layer = path.split("/")[1]
    folders = [f"plugins/{x}/" for x in (layer, *MADE_OF.get(layer, []))]
    return header.startswith((*folders, "plugins/common/"))


def wrong_include(path, header):
    room, other = room_of(path), room_of(header)
    if room == "plugins" and header.startswith("strata/"):
        return header not in PLUGIN_HEADERS and not header.startswith(PLUGIN_HEADER_FOLDER)
    if room == "plugins" and other == "plugins":
        return not own_layer(path, header)
    if other is None:
        return header.split("/")[0] in OUTSIDE
    return not allowed(room, other, header)


def wrong_includes(room):
    return [f"{path}:{number} includes {header}" for path in sources(room)
            for number, header in includes(path) if wrong_include(path, header)]


# ---- calls -------------------------------------------------------------------------------

# TARGET-FILE.o, or FILE.o where the target has no flags of its own.
OBJECT = re.compile(r"(?:(?:\w*la|strata)-)?([a-z0-9_]+)\.o$")
# The library's files again, in the CUDA module and in a test.
COPIES = ("strata_cuda_la-", "tests_libcounted_la-", "tests_libcounted_language_la-")


def objects(build):
    """Source file to object, of the library, check/, the command, plugins and kernels."""
    found = {}
    for room in (r for r in MAY_USE if "/" not in r):
        for folder, _, names in os.walk(os.path.join(build, room)):
            for name in names:
                part = OBJECT.match(name)
                copied = name.startswith(COPIES) and room != "kernels"
                at = os.path.relpath(folder, build).removesuffix("/.libs")
                # FILE.o beside a FILE.cu is its kernels, which nm does not tell from C.
                kernels = part and name == f"{part.group(1)}.o" and os.path.exists(
                    f"{at}/{part.group(1)}.cu")
                if part and not copied and not kernels:
                    found[f"{at}/{part.group(1)}.c"] = os.path.join(folder, name)
    return {path: o for path, o in found.items() if os.path.exists(path)}


def calls(build):
    """File to the files that define what it leaves undefined, and by which symbols."""
    listed = objects(build)
    text = subprocess.run(["nm", "-A", "-g", *listed.values()], check=True,
                          capture_output=True, text=True).stdout
    path_of = {o: path for path, o in listed.items()}
    defined, wanted = {}, []
    for line in text.splitlines():
        at, _, rest = line.partition(":")
        *_, kind, symbol = rest.split()
        if kind in "Uwv":
            wanted.append((path_of[at], symbol))
        # check/allocation.c stands in for the C library's functions, for all of the command.
        elif "allocation" not in at:
            defined.setdefault(symbol, []).append(path_of[at])
    graph = {path: {} for path in listed}
    for path, symbol in wanted:
        other = nearest(path, defined.get(symbol, [path]))
        if other != path:
            graph[path].setdefault(other, set()).add(symbol)
    return graph


def nearest(path, others):
    """Modules may each have a symbol of a name: the one of the same folder is meant."""
    return max(others, key=lambda other: len(os.path.commonprefix([path, other])))


def unseen(graph, rooms):
    return [f"{path} has no object: its calls are not known" for room in rooms
            for path in sources(room) if path.endswith(".c") and path not in graph
            and not path.startswith(NOT_COMPILED)]


def wrong_calls(graph, room):
    return [f"{path} calls {', '.join(sorted(symbols))} of {other}"
            for path, others in graph.items() if room_of(path) == room
            for other, symbols in others.items()
            if not allowed(room, room_of(other), header_of(other))]


def header_of(path):
    return os.path.splitext(path)[0] + ".h"


def circles(graph):
    """Strongly connected files, more than one each, by R. Tarjan's algorithm (1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(path):
        index[path] = low[path] = len(index)
        stack.append(path)
        for other in graph[path]:
            if other not in index:
                visit(other)
            if other in stack:
                low[path] = min(low[path], low[other])
        if low[path] == index[path]:
            circle = stack[stack.index(path):]
            del stack[stack.index(path):]
            if len(circle) > 1:
                found.append(sorted(circle))

    for path in graph:
        if path not in index:
            visit(path)
    return found


def is_explained(path):
    with open(path, encoding="utf-8") as f:
        return "mutual recursion" in f.read().lower().replace("\n * ", " ")


# ---- folders and READMEs -----------------------------------------------------------------

def tracked():
    """Files of the repository, or None outside of one."""
    try:
        git = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                             capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return git.stdout.splitlines() if git.returncode == 0 and git.stdout else None


def full_folders(files):
    count = {}
    for path in files:
        if os.path.exists(path):
            folder = os.path.dirname(path)
            count[folder] = count.get(folder, 0) + 1
    return [f"{folder} holds {n} files" for folder, n in sorted(count.items())
            if n > FOLDER_FILES and folder not in CATALOGUES]


def no_rooms():
    """Folders of sources without rules."""
    known = {room.split("/")[0] for room in MAY_USE} | OUTSIDE | {"include"}
    return [f"{folder} is not a room" for folder in sorted(os.listdir("."))
            if folder not in known and os.path.exists(f"{folder}/local.mk")]


def lines_of(room):
    return sum(len(open(path, encoding="utf-8").readlines()) for path in sources(room))


def untrue(room):
    """What a room's README gets wrong."""
    try:
        with open(os.path.join(room, "README.md"), encoding="utf-8") as f:
            text = f.read()
    except FileNotFoundError:
        return [f"{room}/README.md is missing"]
    wrong = []
    use = re.search(r"^May use: (.*)\.$", text, re.M)
    said = use and use.group(1).replace("nothing", "").replace(",", "").split()
    if said != MAY_USE[room].split():
        wrong.append(f"{room}/README.md: 'May use: ' should list {MAY_USE[room]}")
    if not re.search(r"^Begin with ", text, re.M):
        wrong.append(f"{room}/README.md does not say what to begin with")
    for name in re.findall(r"`([\w./]+(?:\.\w+|/))`", text):
        if not any(os.path.exists(os.path.join(base, name))
                   for base in (room, ".", "include")):
            wrong.append(f"{room}/README.md names {name}, which does not exist")
    for link in re.findall(r"\]\(([^)#:]+)[^)]*\)", text):
        if not os.path.exists(os.path.join(room, link)):
            wrong.append(f"{room}/README.md links to {link}, which does not exist")
    return wrong


def missing_functions(room):
    """Calls of a README's indented trees that no source defines or calls."""
    with open(os.path.join(room, "README.md"), encoding="utf-8") as f:
        names = re.findall(r"^ {4,}([a-z]+_[a-z_]+) ?", f.read(), re.M)
    text = "".join(open(path, encoding="utf-8").read()
                   for r in MAY_USE for path in sources(r))
    return [f"{room}/README.md names {name}, which is no function"
            for name in names if not re.search(rf"\b{name}\(", text)]


def foreign_sources():
    """A layer's module is built from its own folder, from that of what it is made of, and
    from plugins/common."""
    wrong = []
    for layer in sorted(os.listdir("plugins")):
        stanza = f"plugins/{layer}/local.mk"
        if layer == "common" or not os.path.exists(stanza):
            continue
        with open(stanza, encoding="utf-8") as f:
            named = re.findall(r"(?<![\w/])[a-z]\w*/[\w/]+\.(?:c|h|cu|cuh|lo)\b", f.read())
        own = (f"plugins/{layer}/", "plugins/common/", "tests/plugins/",
               *(f"plugins/{x}/" for x in MADE_OF.get(layer, [])))
        wrong += [f"{stanza} names {path}" for path in named if not path.startswith(own)]
    return wrong


def layers_without_stanza():
    with open("plugins/layers.mk", encoding="utf-8") as f:
        text = f.read()
    return [f"plugins/{layer} has no local.mk in plugins/layers.mk: run ./bootstrap"
            for layer in sorted(os.listdir("plugins"))
            if os.path.isdir(f"plugins/{layer}") and f"/{layer}/local.mk" not in text]


# ---- TAP ---------------------------------------------------------------------------------

number = failures = 0


# What libgomp keeps with a team, which may be that of a caller's loop: common/team/team.c.
KEPT = re.compile(r"\s*#\s*pragma omp .*(schedule\((?!static)|\b(sections|ordered|copyprivate))")


def regions_with_state():
    return [f"{path}:{number} has {line.strip()}" for path in sources("plugins")
            if path.endswith((".c", ".h"))
            for number, line in enumerate(open(path, encoding="utf-8"), 1)
            if KEPT.match(line)]


def claim(text, wrong):
    global number, failures
    number += 1
    failures += bool(wrong)
    print(f"{'not ' * bool(wrong)}ok {number} - {text}")
    for line in wrong:
        print("#", line)


def skip(text, reason):
    global number
    number += 1
    print(f"ok {number} - {text} # SKIP {reason}")


def main(source, build):
    os.chdir(source)
    graph = calls(build)
    for room, use in MAY_USE.items():
        words = use or "nothing else of ours"
        claim(f"{room} includes {words}", wrong_includes(room))
        if any(room_of(path) == room for path in graph):
            claim(f"{room} calls {words}", wrong_calls(graph, room))
    claim("every file of the library and the command is seen",
          unseen(graph, [r for r in MAY_USE if r not in ("kernels", "plugins")]))
    claim("examples, Python and serving use the public interface",
          [f"{path}:{n} includes {h}" for folder in ("examples", "python", "serving")
           for path in sources_of(folder) for n, h in includes(path)
           if room_of(h) and not (path.startswith("python/check/") and h in CHECKER)])
    found = circles(graph)
    between = [c for c in found if len({room_of(path) for path in c}) > 1]
    claim("no files of different rooms call each other in a circle", map_lines(between))
    claim("a circle inside a room is mutual recursion that is explained",
          map_lines(c for c in found if c not in between and not all(map(is_explained, c))))
    print(f"# {len(graph)} files; in circles between rooms "
          f"{sum(map(len, between))}, inside rooms "
          f"{sum(len(c) for c in found if c not in between)}")
    n = lines_of("core")
    claim(f"core has at most {CORE_LINES} lines",
          [f"it has {n}"] if n > CORE_LINES else [])
    print(f"# core: {n} lines")
    files = tracked()
    text = f"no folder holds more than {FOLDER_FILES} files beside its sub-rooms"
    if files:
        claim(text, full_folders(files))
    else:
        skip(text, "not a repository")
    for room in MAY_USE:
        claim(f"{room}/README.md is true", untrue(room))
    claim("every folder of sources is a room", no_rooms())
    claim("READMEs name functions that are there",
          [line for room in MAY_USE for line in missing_functions(room)])
    claim("every layer's folder has a stanza", layers_without_stanza())
    claim("a layer is built from its folder and plugins/common", foreign_sources())
    claim("regions of plugins keep nothing with the caller's team", regions_with_state())
    print(f"1..{number}")
    return failures > 0


def sources_of(folder):
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith(SOURCE_NAMES):
                yield os.path.join(at, name)


def map_lines(circle_list):
    return [" <-> ".join(c) for c in circle_list]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
