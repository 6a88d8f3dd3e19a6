#!/bin/sh
# TAP: examples/language/decoder.py: which models become networks, and which are refused.
. "${srcdir:-.}/tests/tap.sh"
export STRATA_COSTS=analytic
cd "$scratch" || exit 99
if ! command -v python3 >/dev/null 2>&1; then
    skip 'models become networks' 'no python3'
    finish
fi

# model.py FOLDER [KEY=JSON].. [dtype=..] [lm_head=no]: a decoder of one block and 300 words,
# of the family and the keys given.
cat >model.py <<'EOF'
import json, math, os, struct, sys
folder, *given = sys.argv[1:]
config = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
          "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 300,
          "max_position_embeddings": 16}
config.update((k, json.loads(v)) for k, v in (pair.split("=", 1) for pair in given))
dtype, head = config.pop("dtype", "F32"), config.pop("lm_head", True)
shapes = {"model.embed_tokens": [300, 8], "model.norm": [8]}
if head:
    shapes["lm_head"] = [300, 8]
for name, shape in {"input_layernorm": [8], "post_attention_layernorm": [8],
                    "self_attn.q_proj": [8, 8], "self_attn.k_proj": [8, 8],
                    "self_attn.v_proj": [8, 8], "self_attn.o_proj": [8, 8],
                    "mlp.gate_proj": [16, 8], "mlp.up_proj": [16, 8],
                    "mlp.down_proj": [8, 16]}.items():
    shapes["model.layers.0." + name] = shape
header, data = {}, b""
for name, shape in shapes.items():
    n = math.prod(shape)
    more = struct.pack(f"<{n}f", *(math.sin(i + n) for i in range(n)))
    more = more if dtype == "F32" else more[:n]
    header[name + ".weight"] = {"dtype": dtype, "shape": shape,
                                "data_offsets": [len(data), len(data) + len(more)]}
    data += more
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
os.makedirs(folder)
with open(os.path.join(folder, "model.safetensors"), "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text + data)
with open(os.path.join(folder, "config.json"), "w") as f:
    json.dump(config, f)
EOF
model() { python3 model.py "$@" || exit 99; }
decoder() { python3 "$srcdir/examples/language/decoder.py" "$@"; }
generate() { "$strata" generate "$@" --ids 5,17 --length 2; }
sizes=layers=1,hidden=8,heads=2,kv_heads=1,ffn=8,vocabulary=10
refused() { # refused PATTERN CLAIM ARGUMENT..: with a message, and nothing is written
    pattern=$1 claim=$2
    shift 2
    rm -f refused.*
    expect 2 "^decoder.py: error: .*$pattern" "$claim" decoder "$@" -o refused.ini
    if [ -e refused.ini ] || [ -e refused.safetensors ] || grep -q Traceback "$log"; then
        echo 'files were written, or a traceback was' >>"$log"
        result 1 "$claim: cleanly"
    fi
}

# What becomes a network.
model whole
cat >whole/tokenizer.json <<'EOF'
{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
EOF
expect 0 'net.tokenizer.json: the tokenizer' 'a folder becomes a network, with its tokenizer' \
    decoder whole -o net.ini
cmp -s net.tokenizer.json whole/tokenizer.json
result $? 'which lies where strata generate finds it'
expect 0 '^ab' 'a text goes on by it' "$strata" generate net.ini --prompt ab --length 1 \
    --temperature 0
echo other >net.tokenizer.json
expect 0 'stays the tokenizer' 'another tokenizer is not replaced' decoder whole -o net.ini
grep -q other net.tokenizer.json
result $? 'and stays what it was'
model tied lm_head=false tie_word_embeddings=true
expect 0 '' 'the embedding may be the head' decoder tied -o tied.ini
mkdir -p hub/blobs
model hub/snapshot
mv hub/snapshot/model.safetensors hub/blobs/1
ln -s ../blobs/1 hub/snapshot/model.safetensors
expect 0 '' 'weights may be links' decoder hub/snapshot -o hub.ini
grep -q '^anywhere = yes' hub.ini
result $? 'which the network allows'
expect 0 '^5 17 [0-9]+ [0-9]+$' 'and follows' generate hub.ini
model 'odd;name # of $1'
expect 0 '' 'odd names are quoted' decoder 'odd;name # of $1' -o 'odd $2 #.ini'
expect 0 '^5 17 [0-9]+ [0-9]+$' 'and read' generate 'odd $2 #.ini'
expect 2 'no way to write' 'or refused where no quotes help' \
    decoder --random "$sizes" -o 'a ;b.ini'

# What does not.
model bytes 'dtype="I8"'
refused 'embed_tokens.weight is of I8' 'integers are no weights' bytes
model quantised 'quantization_config={"quant_method": "fp8"}'
refused 'quantization_config' 'nor are those of quantised models' quantised
model partly partial_rotary_factor=0.5
refused 'partial_rotary_factor is 0.5' 'heads turn as a whole' partly
model types 'layer_types=["sliding_attention"]'
refused 'layer_types' 'windows are those of the types of layers' types
model headless lm_head=false
refused 'lm_head.weight' 'a head is needed' headless
i=0
for bad in 'rope_scaling="linear"' 'rope_scaling={"type": "linear"}' 'rope_theta="abc"' \
    'rms_norm_eps="1e-5"' 'num_hidden_layers=true' 'hidden_size="8"' 'rope_parameters=[1]' \
    'num_attention_heads=0' 'sliding_window="x"' 'model_type="gpt2"'; do
    i=$((i + 1))
    model "bad$i" "$bad"
    refused "bad$i" "$bad is refused" "bad$i"
done
model list
echo '[]' >list/config.json
refused 'list/config.json: a list' 'config.json is an object' list
model header
printf '\2\0\0\0\0\0\0\0[]' >header/model.safetensors
refused 'header/model.safetensors: a list' 'a header of safetensors is one' header
printf '\10\0\0\0\0\0\0\0{"a":{}}' >header/model.safetensors
refused 'header/model.safetensors' 'with shapes' header
printf '\10\0\0' >header/model.safetensors
refused 'header/model.safetensors' 'and whole' header
rm header/model.safetensors
refused 'neither' 'weights are needed' header
echo '{"weight_map": []}' >header/model.safetensors.index.json
refused 'weight_map' 'in shards that are named' header

# Checkpoints of llama2.c.
python3 -c 'import struct
def write(name, head, count):
    with open(name, "wb") as f:
        f.write(struct.pack("<7i", *head) + struct.pack("<f", 0.5) * count)
# embedding, a block, its last norm, and the tables of 16 places
write("one.bin", (8, 16, 1, 2, 2, 300, 16),
      300 * 8 + 2 * 8 + 4 * 64 + 3 * 128 + 8 + 16 * 4)
write("short.bin", (8, 16, 1, 2, 2, 300, 16), 100)
write("huge.bin", (2**31 - 1,) * 7, 100)
write("blocks.bin", (8, 16, 4096, 2, 2, 300, 16), 100)' || exit 99
expect 0 'no tokenizer' 'a checkpoint becomes a network' \
    decoder one.bin -o story.ini --context 64
expect 0 'room = 64' 'with as many places as were asked for' cat story.ini
expect 0 '^5 17 [0-9]+ [0-9]+$' 'it runs' generate story.ini
printf x >tokenizer.bin
printf y >one.tokenizer.bin
expect 0 'story.tokenizer.bin: ' 'its tokenizer is copied, too' decoder one.bin -o story.ini
expect 0 '^y$' 'that of its own name first' cat story.tokenizer.bin
rm tokenizer.bin
refused 'missing.bin: No such file' 'it must be there' missing.bin
refused 'its header makes it' 'and whole' short.bin
refused 'its header makes it' 'and as long as its header says' blocks.bin
refused 'layers' 'a damaged header does not take for ever' huge.bin

# Options.
random() { refused "$1" "$2" --random "${3-$sizes}" ${4+"$4" "$5"}; }
random 'NAME=INTEGER' 'no sizes are refused' ''
random 'and once' 'and one twice' "$sizes,layers=2"
random 'sizes' '--sizes of no integers are' "$sizes" --sizes x
random 'batch' 'and --batch with an empty item' "$sizes" --batch 1,,2
random 'batch' 'and one of 0' "$sizes" --batch 0
expect 2 'error: none/a.safetensors: No such' 'the folder must be there' \
    decoder --random "$sizes" -o none/a.ini
cp whole/model.safetensors kept.safetensors
expect 2 'did not write' 'the weights of others are not replaced' \
    decoder --random "$sizes" -o whole/model.ini
cmp -s kept.safetensors whole/model.safetensors
result $? 'and stay as they are'
decoder --random "$sizes" -o own.ini >"$log" 2>&1 &&
    decoder --random "$sizes" --seed 2 -o own.ini >"$log" 2>&1
result $? 'those that it wrote itself are'
finish
