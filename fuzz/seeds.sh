#!/bin/sh
# seeds.sh STRATA SOURCES FOLDER: what the fuzz targets start from, in FOLDER/corpus_*: the
# test data, and small engines of every kind of decision, built by the command.
set -eu
strata=$1 sources=$2 folder=$3
nets=$sources/fuzz/nets corpus=$folder/corpus_engine
mkdir -p "$corpus" "$folder/corpus_ini" "$folder/corpus_safetensors" "$folder/corpus_npy" \
    "$folder/corpus_onnx" "$folder/corpus_import" "$folder/corpus_ranges" "$folder/corpus_tokenizer"
for f in "$sources"/examples/digits/*.ini "$sources"/examples/plugins/*/*.ini "$nets"/*.ini; do
    cp "$f" "$folder/corpus_ini/$(basename "$f")"
done
for f in "$sources"/tests/data/bad-ini/*/*.ini; do
    subject=$(dirname "$f")
    cp "$f" "$folder/corpus_ini/$(basename "$subject")-$(basename "$f")"
done
seed() { # TARGET NAME TEXT: escapes as printf has them
    printf "$3" >"$folder/corpus_$1/$2"
}
seed ini include '@[include]\nfile = a.inc\nfile = b.inc\n[network]\nformat = 1\n@[vars]\na = 1\n@[build]\nfusion = ${a}\n'
seed ini include-again '@[include]\nfile = a.inc\nfile = a.inc\n@[build]\nfusion = no\n@'
seed ini include-cycle '@[include]\nfile = a.inc\n@[include]\nfile = b.inc\n@[include]\nfile = a.inc\n'
seed ini include-missing '@[include]\nfile = c.inc\nfile = ../a\nfiel = x\nfile = ${no}\n@@'
seed ini options '+build.fusion=no\n+layer a.pad=3\n+x\n-a=5\n[vars]\na = 1\n[layer a]\npad = ${a}\n'
for d in '<f8' '<f4' '<f2' '<i8' '<i4' '<i2' '|i1' '<u8' '<u4' '<u2' '|u1' '|b1'; do
    for order in False True; do
        data=$(printf '%*s' $((6 * ${d#??})) '' | tr ' ' 7)
        seed npy ${d#?}-$order "\\0{'descr': '$d', 'fortran_order': $order, 'shape': (2, 3), }\\n$data"
    done
done
seed ranges table 'strata-ranges 1\n# LOW HIGH SEEN TENSOR, sorted by TENSOR\n-3.25 7.5 51380224 conv1\n0 1e-05 9 relu:1\n'
# A graph with all that it may hold; a function; values in a file; a tensor; lists.
seed onnx model '\010\010\022\001m\032\0011B\002\020\021B\016\012\012ai.onnx.ml\020\003:\231\001\022\001g\012W\012\001x\012\001w\022\001y\032\001n\042\002Op*\012\012\001pB\002\001\001\240\001\007*\026\012\001v*\016\010\002\020\001\045\000\000\200?\045\000\000\000@\240\001\004*\010\012\001s\042\003abc*\010\012\001f=\000\000\200?*\015\012\001b2\005\012\003\042\001R\240\001\005*\021B\001w\010\002\020\001J\010\000\000\200?\000\000\000@*\011\010\003\020\003*\003\001\002\003Z\024\012\001x\022\017\012\015\010\001\022\011\012\003\022\001b\012\002\010\003b\007\012\001y\022\002\042\000'
seed onnx function ':\000\312\0012\012\001f\042\001a*\001b2\001k:\017\042\001E*\012\012\001k\252\001\001k\240\001\001J\002\020\021R\002myZ\013\012\001d\025\000\000\200?\240\001\001'
seed onnx external ':4*2B\001w\010\002\020\001p\001j\015\012\010location\022\001wj\013\012\006offset\022\0018j\013\012\006length\022\0018\010\010\010\010\010\010\010\010\010\010'
seed onnx tensor '\010\002\020\014Z\002\001\002B\001t'
seed onnx lists ':W\012H\042\001O*\020\012\001tR\004\020\011(\001R\005\020\0102\001a*\005\012\001gZ\000*\011\012\001sJ\001aJ\001b*\005\012\001yr\000*\016\012\001r\030\377\377\377\377\377\377\377\377\377\001*\010\012\001d\025\000\000\200?j\013\012\001v\022\006B\004\010\007\022\000'
# Eight elements of each type that is no dtype: its number, in octal, and their bytes.
for type in 004:16 005:16 014:32 015:64 022:8 024:8 025:4 026:4 027:4 030:8 031:2 032:2; do
    size=${type#*:}
    data=$(printf '%*s' "$size" '' | tr ' ' x)
    seed onnx carried-$size-${type%:*} "\\010\\010\\020\\${type%:*}J\\$(printf %03o "$size")$data"
done
for f in /usr/share/libonnx-testdata/data/node/test_[lis]*/model.onnx; do
    [ ! -e "$f" ] || cp "$f" "$folder/corpus_onnx/$(basename "$(dirname "$f")")"
done
for f in /usr/share/libonnx-testdata/data/node/test_[bcfimpqrst]*/model.onnx; do
    [ ! -e "$f" ] || cp "$f" "$folder/corpus_import/$(basename "$(dirname "$f")")"
done
# A file behind its text, a text for each tokenizer that is there already.
for f in "$sources"/tests/data/tokenizers/*.json; do
    { printf '\377\016The  dog'"'"'s 12\n'; cat "$f"; } >"$folder/corpus_tokenizer/$(basename "$f")"
done
seed tokenizer llama2c '\377\004abc \005\000\000\000\000\000\000\000\001\000\000\000u\000\000\000\000\001\000\000\000b\000\000\000\000\001\000\000\000e\000\000\000\277\001\000\000\000a\000\000\000\277\001\000\000\000 \000\000\200\277\002\000\000\000 a\000\000\200\277\006\000\000\000<0x62>'
for number in 0 1 2 3 4 5; do
    seed tokenizer text$number "\\00$number It's  a <s> ab 12 _\303\251e\314\201 \344\270\255\377\n"
done
# Every kind of step.
model='"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,".":3,"_":4},"merges":[["a","b"]]}}'
parts() { # NAME MEMBERS
    seed tokenizer "$1" "\\377\\014 Ab1. a_b\\tAB{$2,$model"
}
split='"type":"Split","pattern"'
parts splits "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{$split:{\"String\":\"b\"},\"behavior\":\"MergedWithNext\",\"invert\":true},{$split:{\"Regex\":\"[^a[b]]{1,2}?|(?i:A)\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false},{$split:{\"Regex\":\"(?<=a)|b++\"},\"behavior\":\"Contiguous\"},{\"type\":\"Digits\"},{\"type\":\"Punctuation\",\"behavior\":\"Removed\"},{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"_\"}]}"
parts words '"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Whitespace"},{"type":"Metaspace","replacement":"_","add_prefix_space":false}]},"decoder":{"type":"Metaspace","replacement":"_"}'
parts decoders '"decoder":{"type":"Sequence","decoders":[{"type":"Strip","content":"a","start":1,"stop":1},{"type":"WordPiece","prefix":"_","cleanup":true},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":1}]}'
parts normalizers '"normalizer":{"type":"Sequence","normalizers":[{"type":"StripAccents"},{"type":"Replace","pattern":{"Regex":"[A-Z]+"},"content":"ab"},{"type":"Prepend","prepend":"_"},{"type":"NFD"},{"type":"ByteLevel"}]}'
parts pairs '"post_processor":{"type":"BertProcessing","cls":["a",0],"sep":["b",1]},"truncation":{},"decoder":{"type":"BPEDecoder","suffix":"b"}'
number=0
build() {
    number=$((number + 1))
    net=$1
    shift
    "$strata" build -q "$nets/$net.ini" -o "$corpus/seed$number.engine" "$@" >/dev/null
}
for net in branches shapes; do
    build $net --set build.formats=fp32:nchw
    build $net --set build.formats=fp32:nchw --set build.fusion=no
    build $net --set build.formats=fp32:nhwc,fp32:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nhwc8,fp16:nchw
    build $net --set build.precision=fp16 --set build.formats=fp16:nc/2hw2
    build $net --set build.precision=any --set build.objective=reformats
done
build batches
build batches --set build.precision=fp16 --costs=measure
build branches --set 'layer conv.impl=any' --set 'layer second.impl=c' --costs=measure

for number in 1 5 9; do
    "$strata" inspect "$corpus/seed$number.engine" --section=weights \
        >"$folder/corpus_safetensors/seed$number"
done
