#!/bin/sh
# Collect a folder that runs on a GPU host without this machine's libraries.
#   scripts/gpu-bundle.sh BUILD_DIR BUNDLE_DIR PROGRAM...
# Takes the command, libstrata, modules, plugins (but oneDNN's, for the host), the programs
# named, and every shared library they need but the C library's and CUDA's; networks; and
# the models in $STRATA_MODELS, or in ../shared/models beside the sources.
# BUNDLE_DIR/run.sh PROGRAM runs one.
set -eu
build=$1 bundle=$2
source=$(cd "$(dirname "$0")/.." && pwd)
models=${STRATA_MODELS:-$source/../shared/models}
shift 2
rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/plugins" "$bundle/devices" \
    "$bundle/share/modules"

# Libtool keeps the real program of a wrapper in .libs. Programs keep their folders: two
# of different rooms may have one name.
take() {
    folder=$(dirname "$1") name=$(basename "$1")
    mkdir -p "$bundle/bin/$folder"
    if [ -x "$build/$folder/.libs/$name" ]; then
        cp "$build/$folder/.libs/$name" "$bundle/bin/$folder/"
    else
        cp "$build/$folder/$name" "$bundle/bin/$folder/"
    fi
}
take strata
for program; do take "$program"; done
cp -L "$build"/plugins/.libs/*.so "$bundle/plugins/"
rm -f "$bundle/plugins/onednn.so" # its library is two thirds of what a bundle may hold
cp "$source"/tests/cuda/modules/*.ini "$bundle/plugins/" # cases for strata check
cp -L "$build"/kernels/.libs/strata-*.so "$bundle/devices/"
cp -L "$build"/tests/.libs/*.so "$bundle/share/modules/"
mv "$bundle/share/modules/launch_count.so" "$bundle/lib/"
for script in gpu-layers.sh gpu-sanitize.sh gpu-sanitize-plans.sh sanitizer.sh \
    choose_runs.py gpu-check-plugins.sh; do
    cp "$(dirname "$0")/$script" "$bundle/"
done
cp -P "$build"/.libs/libstrata.so* "$bundle/lib/"
if [ -d "$build/examples/plugins/built" ]; then
    cp -r "$build/examples/plugins/built" "$bundle/examples"
fi

# What programs read, as in the sources.
mkdir -p "$bundle/share/bench" "$bundle/share/examples" "$bundle/share/scripts"
cp "$source"/bench/*.py "$bundle/share/bench/"
cp -r "$source/bench/nets" "$source/bench/sequences" "$bundle/share/bench/"
cp -r "$source/examples/models" "$source/examples/digits" "$source/examples/language" \
    "$bundle/share/examples/"
mkdir -p "$bundle/share/tests/cuda" "$bundle/share/tests/data"
cp -r "$source/tests/cuda/nets" "$bundle/share/tests/cuda/"
cp -r "$source/tests/data/decoder" "$bundle/share/tests/data/"
cp "$source/scripts/convert_models.py" "$bundle/share/scripts/"
for model in mnist_cntk resnet20_cifar10 squeezenet_v1.1 yolo-fastest-1.1; do
    [ -d "$models/$model" ] || continue
    mkdir -p "$bundle/share/models/$model"
    for file in "$models/$model"/*; do
        case $file in
        *.onnx | *.th | *.bin | *.weights) ;; # weights.f32 holds the same
        *) cp "$file" "$bundle/share/models/$model/" ;;
        esac
    done
done
chmod -R u+w "$bundle/share"

# What the host has: the C library's own, the driver's, and the CUDA toolkit's.
theirs='linux-vdso|ld-linux|lib(c|m|dl|rt|pthread|resolv|util|anl|nsl)\.so'
theirs="$theirs|lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|nvrtc[a-z-]*|nvidia-[a-z]*)\.so"
for file in $(find "$bundle/bin" -type f) $(find "$bundle" -name '*.so'); do
    LD_LIBRARY_PATH="$build/.libs" ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// {print $3}'
done | sort -u | grep -vE "/($theirs)" | while read -r library; do
    [ -e "$bundle/lib/$(basename "$library")" ] || cp -L "$library" "$bundle/lib/"
done
strip --strip-unneeded $(find "$bundle/bin" -type f) "$bundle"/lib/*.so* "$bundle"/plugins/*.so \
    "$bundle"/devices/*.so 2>/dev/null || true

cat >"$bundle/run.sh" <<'WRAPPER'
#!/bin/sh
# Run a program of this bundle: run.sh PROGRAM ARGUMENT...
here=$(cd "$(dirname "$0")" && pwd)
program=$1
shift
LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# CUDA's libraries: the loader's own path, the toolkit's folders, Python's wheels.
wheels=$(python3 -c 'import sys
for p in filter(None, sys.path):
    for name in "cu13", "cuda_runtime", "cublas", "cudnn":
        print(p + "/nvidia/" + name + "/lib")' 2>/dev/null)
for library in libcudart.so.13 libcublasLt.so.13 libcudnn.so.9; do
    if ldconfig -p 2>/dev/null | grep -qF "$library"; then continue; fi
    for folder in /usr/local/cuda/lib64 /usr/local/cuda-13*/lib64 \
        /usr/local/cuda*/targets/*/lib /usr/lib/x86_64-linux-gnu /opt/cuda/lib64 $wheels; do
        if [ -e "$folder/$library" ]; then
            LD_LIBRARY_PATH="$LD_LIBRARY_PATH:$folder"
            break
        fi
    done
done
export LD_LIBRARY_PATH
export STRATA_PLUGIN_PATH="${STRATA_PLUGIN_PATH:-$here/plugins}"
export STRATA_DEVICE_PATH="${STRATA_DEVICE_PATH:-$here/devices}"
export STRATA_TEST_MODULES="${STRATA_TEST_MODULES:-$here/share/modules}"
export STRATA_EXAMPLES="${STRATA_EXAMPLES:-$here/examples}"
export STRATA_MODELS="${STRATA_MODELS:-$here/share/models}"
export srcdir="${srcdir:-$here/share}" CRITERION_JOBS="${CRITERION_JOBS:-1}"
exec "$here/bin/$program" "$@"
WRAPPER
chmod +x "$bundle/run.sh"
size=$(du -sm --exclude=models "$bundle" | cut -f1)
echo "$bundle: $size MB, models aside"
[ "$size" -le 160 ] || { echo "over 160 MB" >&2; exit 1; }
