#!/bin/sh
# coverage.sh FOLDER LEAST: line coverage of the readers of untrusted bytes by the
# corpora in FOLDER/corpus_*, from the binaries in FOLDER/coverage. Fails under LEAST
# percent of any reader.
set -eu
folder=$1 least=$2
cd "$folder/coverage"
rm -f ./*.profraw
for binary in fuzz_*; do
    target=${binary#fuzz_}
    [ -d "../corpus_$target" ] || continue
    LLVM_PROFILE_FILE=$target.profraw "./$binary" -runs=0 "../corpus_$target" \
        >"$target.log" 2>&1 || { tail -n 20 "$target.log"; exit 1; }
done
llvm-profdata merge -sparse ./*.profraw -o all.profdata
objects=fuzz_ini
for binary in fuzz_*; do [ "$binary" = fuzz_ini ] || objects="$objects -object $binary"; done
failed=0
# shellcheck disable=SC2086
llvm-cov export $objects -summary-only -instr-profile=all.profdata |
    sed 's/"filename":/\n&/g' >all.json
# reader NAME FILE...: its lines, those that ran, and the share.
reader() {
    name=$1
    shift
    awk -v name="$name" -v least="$least" -v files="$*" '
        BEGIN { split(files, wanted, " ") }
        /^"filename"/ && match($0, /"lines":\{"count":[0-9]+,"covered":[0-9]+/) {
            split(substr($0, RSTART, RLENGTH), n, /[:,}]/)
            file = $0
            sub(/^"filename":"/, "", file)
            sub(/".*/, "", file)
            named = ""
            for (i in wanted)
                if (substr(file, length(file) - length(wanted[i])) == "/" wanted[i])
                    named = wanted[i]
            if (!named || !n[3])
                next
            file = named
            printf "    %-24s %5d of %5d lines, %5.1f %%\n", file, n[5], n[3],
                100 * n[5] / n[3]
            lines += n[3]
            ran += n[5]
        }
        END {
            share = lines ? 100 * ran / lines : 0
            printf "%-28s %5d of %5d lines, %5.1f %%\n", name, ran, lines, share
            exit share < least
        }' all.json || failed=1
}
reader weights io/weights/weights.c io/weights/safetensors.c io/weights/npy.c io/weights/convert.c \
    io/weights/record.c
reader INI ini/config.c ini/error.c ini/header.c ini/line.c ini/list.c \
    ini/override.c ini/pair.c ini/place.c ini/reader.c ini/scan.c ini/text.c \
    ini/value.c ini/vars.c
reader ONNX io/onnx/decode.c io/onnx/external.c io/onnx/finish.c io/onnx/memory.c \
    io/onnx/model.c io/onnx/tensor.c io/onnx/widen.c io/onnx/wire.c
reader tokenizers language/encode.c language/file/added.c language/file/hugging_face.c \
    language/file/llama2c.c language/file/model.c language/file/post.c language/json/json.c \
    language/json/node.c language/model/bpe.c language/model/vocabulary.c language/model/wordpiece.c \
    language/steps/added.c language/steps/decode.c language/steps/decode_read.c \
    language/steps/normalise.c language/steps/replace.c language/steps/split.c \
    language/steps/split_steps.c language/stream.c language/text/bytes.c \
    language/text/expression.c language/text/pattern.c \
    language/text/unicode.c
reader engine io/engine_file.c engine/file/load.c engine/file/plugins.c \
    engine/file/stored.c planner/record.c planner/restore.c
exit $failed
