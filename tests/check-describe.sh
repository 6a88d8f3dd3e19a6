#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: what `strata describe` prints of a layer goes into a network as it is, for every
# layer and whatever a plugin's texts hold, and the defaults mean what they mean unsaid.
. "${srcdir:-.}/tests/tap.sh"

# What a layer needs that no default gives, as lines of its section; ports in inputs.
needs() {
    case $1 in
    core::Cast) echo 'to = i32' ;;
    core::Compare | core::Concatenation | core::ElementWise | core::MatrixMultiply)
        echo 'inputs = x, x' ;;
    core::Constant) echo 'shape = 2 x 3' ;;
    core::Bottleneck) printf '%s\n' 'reduced = 4' 'convolved = 5' 'projected = 4' 'kernel = 3x3' ;;
    core::Convolution | core::Deconvolution) printf '%s\n' 'filters = 4' 'kernel = 3x3' ;;
    core::Attention | core::QuantizedAttention) echo 'inputs = x, x1, x2' ;;
    core::DynamicProduct) printf '%s\n' 'inputs = x, x1, x2' 'units = 5' ;;
    core::Embedding) printf '%s\n' 'rows = 9' 'columns = 5' ;;
    core::Expand) echo 'repeats = 1, 2, 1, 3' ;;
    core::FullyConnected) echo 'units = 5' ;;
    core::Gather | core::GridSample | core::ReverseSequence) echo 'inputs = x, x1' ;;
    core::LRN) echo 'size = 3' ;;
    core::InvertedResidual) echo 'kernel = 3x3' ;;
    core::MaxUnpool) printf '%s\n' 'inputs = x, x1' 'kernel = 2' ;;
    core::Narrow) echo 'values = e2m1' ;;
    core::NonMaxSuppression) printf '%s\n' 'inputs = x, x1' 'max_output = 3' ;;
    core::Padding) printf '%s\n' 'begin = 0, 0, 1, 2' 'end = 0, 1, 0, 1' ;;
    core::Perceptron) echo 'units1 = 5' ;;
    core::Pointwise) echo 'program = sigmoid x0, product x0 r0' ;;
    core::PooledConvolution) printf '%s\n' 'filters = 4' 'kernel = 3x3' 'pool_kernel = 2' ;;
    core::Pooling) echo 'kernel = 2x2' ;;
    core::Projection) echo 'units = 5' ;;
    core::QuantizedConvolution) printf '%s\n' 'filters = 4' 'kernel = 3x3' ;;
    core::QuantizedDeconvolution) printf '%s\n' 'filters = 4' 'kernel = 3x3' ;;
    core::QuantizedPointwise) echo 'program = dequantize x0 0.1 3, sigmoid r0, quantize_u8 r1' ;;
    core::QuantizedPooling) echo 'global = yes' ;;
    core::QuantizedProduct) echo 'units = 5' ;;
    core::QuantizedSum) echo 'inputs = x, x1' ;;
    core::Resize) echo 'scale = 2' ;;
    core::RNN) printf '%s\n' 'hidden = 4' 'input_mode = skip' ;;
    core::RoiAlign | core::Scatter | core::Select) echo 'inputs = x, x1, x2' ;;
    core::Scale) echo 'scale = 0.3' ;;
    core::Shuffle) echo 'first = 0, 2, 3, 1' ;;
    core::SelfAttention) printf '%s\n' 'units = 18' 'heads = 2' ;;
    core::ShortcutConvolution) printf '%s\n' 'inputs = x, x' 'filters = 4' 'kernel = 3x3' 'pad = 1' ;;
    core::Slice) printf '%s\n' 'begin = 0, 1, 0, 0' 'end = 1, 3, 6, 6' ;;
    core::TopK) echo 'k = 2' ;;
    core::Unary) echo 'op = exp' ;;
    esac
}

# The inputs of a layer that takes others than x of 1 x 4 x 6 x 6, as SHAPE[:DTYPE].
inputs_of() {
    case $1 in
    core::Attention) echo 1x4x6x6 1x4x7x6 1x4x7x5 ;;
    core::Dequantize) echo 1x4x6x6:u8 ;;
    core::DynamicProduct) echo 1x4x6x6:u8 1 1:u8 ;;
    core::Embedding) echo 2x3:i64 ;;
    core::Gather) echo 1x4x6x6 5:i64 ;;
    core::GridSample) echo 1x4x6x6 1x3x5x2 ;;
    core::MaxUnpool) echo 1x4x6x6 1x4x6x6:i64 ;;
    core::NonMaxSuppression) echo 1x8x4 1x2x8 ;;
    core::QuantizedAttention) echo 1x4x6x6:e4m3 1x4x7x6:e4m3 1x4x7x5:e4m3 ;;
    core::QuantizedConvolution | core::QuantizedDeconvolution | core::QuantizedProduct) echo 1x4x6x6:int8 ;;
    core::QuantizedPointwise | core::QuantizedPooling) echo 1x4x6x6:int8 ;;
    core::QuantizedSum) echo 1x4x6x6:int8 1x4x6x6:u8 ;;
    core::ReverseSequence) echo 6x4 4:i64 ;;
    core::RNN) echo 3x2x4 ;;
    core::RoiAlign) echo 1x4x6x6 3x4 3:i64 ;;
    core::Scatter) echo 6x4 3x4:i64 3x4 ;;
    core::SelfAttention) echo 2x5x8 ;;
    core::Select) echo 1x4x6x6:bool 1x4x6x6 6 ;;
    *) echo 1x4x6x6 ;;
    esac
}

head_of_network() { # head_of_network NAME OF THE LAYER, ITS TYPE
    printf '[network]\nformat = 1\noutputs = %s\n[weights w]\nrandom = 1\n' "$1"
    suffix=
    for input in $(inputs_of "$2"); do
        printf '[input x%s]\nshape = %s\n' "$suffix" "${input%%:*}"
        [ "$input" = "${input#*:}" ] || printf 'dtype = %s\n' "${input#*:}"
        suffix=$((suffix + 1))
    done
}

# The description with the needs in the place of their comments or defaults.
described() { # described FILE: reads the needs
    cp "$1" "$scratch/section"
    while IFS= read -r line; do
        key=${line%% =*}
        grep -qE "^(; )?$key =" "$scratch/section" || echo "$1 does not tell of $key" >&2
        sed -E "s/^(; )?$key =.*/$line/" "$scratch/section" >"$scratch/next"
        mv "$scratch/next" "$scratch/section"
    done
    cat "$scratch/section"
}

reads_back() { # reads_back LAYER: the same network from the description, and from little
    section=$scratch/${1##*:}.ini
    $strata describe "$1" -o "$section" && $strata describe "$1" >"$scratch/printed" &&
        cmp "$section" "$scratch/printed" || return 1
    name=$(sed -n 's/^\[layer \(.*\)\]/\1/p' "$section")
    weights=
    grep -q '^; weights = ' "$section" && weights="weights = w:l"
    { head_of_network "$name" "$1" && needs "$1" | described "$section" &&
        echo "$weights"; } >"$scratch/told.ini"
    { head_of_network "$name" "$1" && printf '[layer %s]\ntype = %s\n' "$name" "$1" &&
        needs "$1" && echo "$weights"; } >"$scratch/unsaid.ini"
    input=$(head_of_network "$name" "$1" |
        sed -n 's/^\[input \(.*\)\]/--input \1=random:7/p')
    # A layer without inputs leaves x to nobody.
    grep -q '^; inputs 0' "$section" && input= &&
        for net in told unsaid; do
            sed '/^\[input/,/^shape/{/^\[input/d;/^shape/d;}' "$scratch/$net.ini" \
                >"$scratch/next" && mv "$scratch/next" "$scratch/$net.ini"
        done
    for net in told unsaid; do
        # shellcheck disable=SC2086
        $strata run "$scratch/$net.ini" $input --output "$name=$scratch/$net.npy" \
            --top 1 || return 1
    done
    cmp "$scratch/told.npy" "$scratch/unsaid.npy"
}

layers=$($strata list -o csv | sed -n 's/^\([^,]*\)@.*/\1/p' | sort -u)
for layer in $layers; do
    reads_back "$layer" >"$log" 2>&1
    result $? "$layer is described as INI, and its defaults read back"
done
[ "$(echo "$layers" | wc -l)" -ge 10 ]
result $? 'there are layers to describe'

# ---- files, builds, CUDA ----------------------------------------------------------------
$strata describe Activation >"$log"
grep -qE '^; defined in /.*/activation.so [0-9.]+, build [0-9a-f]{12}$' "$log"
result $? 'file, version and build of the module are told'
claim='the CUDA version of CUDA modules is told'
if ls "${STRATA_PLUGIN_DIR:-none}"/*-cuda.so >/dev/null 2>&1; then
    grep -qE '^; +from /.*/activation-cuda.so .*, CUDA [0-9]+\.[0-9]$' "$log"
    result $? "$claim"
else
    number=$((number + 1))
    echo "ok $number - $claim # SKIP built without CUDA"
fi
printf 'no room' >"$scratch/folder"
$strata describe Activation -o "$scratch/folder/x.ini" >"$log" 2>&1
[ $? -eq 2 ] && grep -q 'folder/x.ini' "$log"
result $? 'a file that cannot be written is named'

# ---- a plugin whose texts are awkward ---------------------------------------------------
cat >"$scratch/awkward.c" <<'END'
#include <math.h>
#include <string.h>
#include <strata/plugin.h>
typedef struct {
    double third, tiny, open;
    int64_t big;
    strata_string plain, blanks, sum, both;
    strata_reals reals;
    strata_ints ints;
} params;
static int is(strata_string s, const char *text) { return strcmp(s.text, text) == 0; }
static int shape(const strata_node *n)
{
    const params *p = n->params;
    if (p->third != 1.0 / 3 || p->tiny != 1e-300 || !isinf(p->open) ||
        p->big != 9007199254740991 || !is(p->plain, "plain") ||
        !is(p->blanks, " a # b ") || !is(p->sum, "${price} $5") ||
        !is(p->both, "say \"a ;\"") || p->reals.n != 2 || p->reals.v[1] != 1e-3 ||
        p->ints.n != 2)
        return STRATA_FAIL(n, STRATA_EINVAL, "a default did not read back");
    n->out[0].rank = n->in[0].rank;
    memcpy(n->out[0].dims, n->in[0].dims, sizeof n->in[0].dims);
    return STRATA_OK;
}
static int run(const strata_run *r)
{
    memcpy(r->out[0].data, r->in[0].data, (size_t)r->out[0].size * sizeof(float));
    return STRATA_OK;
}
#define AT(f) .name = #f, .offset = offsetof(params, f)
static const strata_attr attrs[] = {
    {AT(third), .type = STRATA_F64, .def = 1.0 / 3, .doc = "two\nlines = 3\r\n[layer x]"},
    {AT(tiny), .type = STRATA_F64, .def = 1e-300, .doc = "\xff\xfe caf\xc3\xa9 ;"},
    {AT(open), .type = STRATA_F64, .def = INFINITY, .max = INFINITY, .doc = "%s%n"},
    {AT(big), .type = STRATA_I64, .def = 9007199254740991, .doc = ""},
    {AT(plain), .type = STRATA_STRING, .def_text = "plain"},
    {AT(blanks), .type = STRATA_STRING, .def_text = " a # b "},
    {AT(sum), .type = STRATA_STRING, .def_text = "${price} $5"},
    {AT(both), .type = STRATA_STRING, .def_text = "say \"a ;\""},
    {AT(reals), .type = STRATA_REALS, .def_text = "-2.5, 1e-3"},
    {AT(ints), .type = STRATA_INTS, .def_text = "3x4", .doc = LONG},
};
static const strata_row rows[] = {{{STRATA_F32_NCHW}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .name = "c", .rows = STRATA_ARRAY(rows), .run = run}};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Awkward",
    .doc = "a\n[network]\n", .min_in = 1, .max_in = 1, .n_out = 1,
    .params_size = sizeof(params), .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls), .shape = shape};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.example", "1.0.0", "Awkward", layers)
END
long=$(printf 'word%0200d ' $(seq 40))
(cd "$scratch" && $CC -shared -fPIC -fvisibility=hidden -Wl,-z,defs -I"$srcdir/include" \
    -DLONG="\"$long\"" awkward.c -o awkward.so) >"$log" 2>&1 &&
    $strata describe Awkward --plugin "$scratch/awkward.so" -o "$scratch/awkward.ini" \
        >>"$log" 2>&1 &&
    { head_of_network awkward1 Awkward && cat "$scratch/awkward.ini"; } \
        >"$scratch/net.ini" &&
    $strata run "$scratch/net.ini" --plugin "$scratch/awkward.so" --input random:1 \
        --top 1 >>"$log" 2>&1
result $? 'whatever texts and defaults a plugin has, the description is INI'
cat "$scratch/awkward.ini" >"$log"
grep -q 'whose default INI cannot hold' "$log" && grep -q '^; both =$' "$log" &&
    grep -q 'café' "$log" && ! grep -q '^lines = 3' "$log"
result $? 'and tells what INI cannot hold'
finish
