#!/bin/sh
# TAP: `strata generate` goes on with a text: what it feeds, draws, prints and refuses.
. "${srcdir:-.}/tests/tap.sh"
export STRATA_COSTS=analytic
cd "$scratch" || exit 99

# Logits hang on the token alone, so that what comes is the same by every way of feeding.
bigram='[layer logits]
type = Embedding
inputs = TOKENS
rows = 300
columns = 300
weights = w'
head='[network]
format = 1
outputs = logits
[weights w]
random = 7
[profile]
T = 1..12: 1, 4
[input ids]
shape = 1 x T
dtype = i32'
whole() { printf '%s\n%s\n' "$head" "$bigram" | sed 's/TOKENS/ids/'; }
# The same, with a state that counts tokens, and logits of the last place alone.
counted() {
    printf '%s\n' "$head" '[state place]
shape = 1
dtype = i32
next = moved
room = 20
[layer same]
type = Compare
op = equal
inputs = ids, ids
[layer ones]
type = Cast
to = i32
inputs = same
[layer count]
type = Reduce
axes = 1
keep_dims = no
inputs = ones
[layer moved]
type = ElementWise
inputs = place, count
[layer last]
type = Slice
axes = 1
begin = -1
end = 1000
inputs = ids' "$bigram" | sed 's/TOKENS/last/'
}
whole >whole.ini
counted >counted.ini
greedy() { "$strata" generate "$@" --ids 5,17,3 --length 9; }

expect 0 '^5 17 3( [0-9]+){9}$' 'tokens come out where no tokenizer is' greedy whole.ini
cp out whole.out
expect 0 '' 'a network with states is fed each token once' greedy counted.ini
cmp -s out whole.out
result $? 'which changes nothing of the text'
expect 0 '^( ?[0-9]+){9}$' 'the prompt can be left out' greedy counted.ini --no-echo
expect 0 '' 'prompts longer than a run are fed in parts' \
    "$strata" generate counted.ini --ids 1,2,3,4,5,6,7,8,9,10,11,12,13,17,3 --length 5
sed 's/.* 13 17 3/5 17 3/' out >tail.out
expect 0 '' 'and end as a short one does' \
    "$strata" generate counted.ini --ids 5,17,3 --length 5
cmp -s out tail.out
result $? 'with the same text'
expect 0 'no more room' 'a text ends where the states are full' \
    "$strata" generate counted.ini --ids 5,17,3 --length 100
test "$(wc -w <out)" -eq 21
result $? 'after as many tokens as have room, and one'
expect 0 'no more room' 'or where a run can be no longer' \
    "$strata" generate whole.ini --ids 5,17,3 --length 100
expect 2 '15 tokens: the network has room for 12' 'a prompt that has no room is refused' \
    "$strata" generate whole.ini --ids 1,2,3,4,5,6,7,8,9,10,11,12,13,17,3
"$strata" build counted.ini -o counted.engine >/dev/null 2>&1
expect 0 '' 'an engine file does as well' greedy counted.engine
cmp -s out whole.out
result $? 'with the same text'

# Draws.
drawn() { "$strata" generate counted.ini --ids 5 --length 16 "$@"; }
expect 0 '' 'a seed draws' drawn --temperature 2 --seed 1
cp out one.out
expect 0 '' 'and draws again' drawn --temperature 2 --seed 1
cmp -s out one.out
result $? 'the same'
expect 0 '' 'another one draws' drawn --temperature 2 --seed 2
! cmp -s out one.out
result $? 'something else'
expect 0 '' 'of one token' drawn --top-k 1
cp out one.out
drawn >out 2>err
cmp -s out one.out
result $? 'the likeliest is drawn'
expect 2 'top-p' 'a share of nothing is refused' drawn --top-p 0
expect 2 'temperature' 'and a negative temperature' drawn --temperature -1
expect 2 "'x'" 'and what is no number' drawn --seed x

# Texts: a tokenizer of 256 bytes and the letters, as llama2.c writes it.
byte() { printf "\\$(printf %03o "$1")"; }
token() { # score's last byte, text
    printf '\0\0\0'
    byte "$1"
    byte ${#2}
    printf '\0\0\0%s' "$2"
}
{
    printf '\6\0\0\0'
    token 0 '<unk>'
    token 0 '
<s>
'
    token 0 '
</s>
'
    i=0
    while [ $i -lt 256 ]; do
        token 0 "$(printf '<0x%02X>' $i)"
        i=$((i + 1))
    done
    for letter in ' ' a b c d e f g h i j k l m n o p q r s t u v w x y z A B C D E F G H \
        I J K L M; do
        token 0 "$letter"
    done
} >tokens.bin
expect 2 'needs a tokenizer' 'a text needs a tokenizer' \
    "$strata" generate counted.ini --prompt abc
expect 0 'abc' 'which may be given' \
    "$strata" generate counted.ini --prompt abc --tokenizer tokens.bin --length 2
cp out given.out
cp tokens.bin counted.tokenizer.bin
expect 0 '^abc' 'or lie beside the network by its name' \
    "$strata" generate counted.ini --prompt abc --length 2
cmp -s out given.out
result $? 'with the same text'
mv counted.tokenizer.bin tokenizer.bin
expect 0 '^abc' 'or in its folder' "$strata" generate counted.ini --prompt abc --length 2
expect 0 '^1$' 'an empty prompt is the token that texts begin with' \
    sh -c "'$strata' generate counted.ini --length 1 -o json | tr -d ' \n' |
        sed 's/.*\"prompt\":\[\([0-9,]*\)\].*/\1/'"
printf 'abc' >prompt.txt
expect 0 '^abc' 'a prompt may be a file' \
    "$strata" generate counted.ini --prompt-file prompt.txt --length 2
expect 0 '"ended_by": "length"' 'JSON tells tokens, text and why it ended' \
    "$strata" generate counted.ini --prompt abc --length 2 -o json
grep -q '"prompt": \[' out && grep -q '"text": " *abc' out && grep -q '"tokens": \[' out
result $? 'all of them'
next=$("$strata" generate counted.ini --ids 5 --length 1 --no-echo -o json |
    tr -d ' \n' | sed 's/.*"tokens":\[\([0-9]*\)\].*/\1/')
expect 0 '"ended_by": "end"' 'a token may be named that ends the text' \
    "$strata" generate counted.ini --ids 5 --end "$next" -o json
expect 2 'no such token' 'one that there is' \
    "$strata" generate counted.ini --ids 5 --end nothing

printf 'a\0b' >nul.txt
expect 0 '^a\?b' 'a zero byte is shown as what a terminal is not given' \
    "$strata" generate counted.ini --prompt-file nul.txt --length 1
expect 0 '' 'an option of drawing draws, whatever it says' drawn --top-p 1 --seed 1
cp out one.out
drawn --top-p 1 --seed 2 >out 2>err
! cmp -s out one.out
result $? 'by its seed'
expect 2 'seed' 'a seed has 64 bits' drawn --seed 99999999999999999999
expect 2 'length' 'and a length is a number' drawn --length 99999999999999999999
expect 2 'no such token' 'a token beyond the logits ends nothing' drawn --end 300

# Measured, its state begins anew when it is full, in the table of layers too.
expect 0 'logits' 'bench and its layers run on where the room ends' "$strata" bench \
    counted.ini --dim T=1 --layers --duration 0 --iterations 30
# What is no decoder.
{
    whole
    printf '[layer turned]\ntype = Shuffle\nfirst = 0, 2, 1\ninputs = logits\n'
} | sed 's/^outputs = logits/outputs = turned/' >turned.ini
expect 2 'ends with a dim of 3 in this run' 'logits that grow with the text are none' \
    "$strata" generate turned.ini --ids 5,7,3
sed 's/dtype = i32/dtype = fp32/; s/inputs = ids/inputs = whole/
    s/^\[layer logits\]/[layer whole]\ntype = Cast\nto = i32\ninputs = ids\n&/' whole.ini >float.ini
sed 's/T = 1..12: 1, 4/T = 4/' whole.ini >fixed.ini
sed 's/shape = 1 x T/shape = 2 x T/' whole.ini >two.ini
{
    whole
    printf '[input mask]\nshape = 1 x T\n[layer y]\ntype = Activation\nkind = relu\n'
    printf 'inputs = mask\n'
} | sed 's/^outputs = logits/&, y/' >masked.ini
{
    whole
    printf '[layer y]\ntype = Activation\nkind = relu\ninputs = logits\n'
} | sed 's/^outputs = logits/&, y/' >both.ini
expect 2 'tokens are i32' 'tokens are integers' greedy float.ini
expect 2 'takes 4 tokens at least' 'a network of one length makes no text' greedy fixed.ini
expect 2 'is for 2 texts' 'nor one of several texts' greedy two.ini
expect 2 'one input' 'nor one with other inputs' greedy masked.ini
expect 2 '--logits' 'which output has the logits is asked for' greedy both.ini
expect 0 '"prompt": ' 'and taken' greedy both.ini --logits logits -o json
expect 2 'has logits of 300 tokens' 'tokens beyond the logits are refused' \
    "$strata" generate whole.ini --ids 5,300
expect 2 'numbers of tokens' 'and what is no list of tokens' \
    "$strata" generate whole.ini --ids 5,,3
expect 2 'alternatives' 'one prompt is enough' \
    "$strata" generate whole.ini --ids 5 --prompt a
expect 2 'json' 'there is no table of a text' greedy whole.ini -o csv
expect 2 'one network' 'a network is needed' "$strata" generate

# A checkpoint that others trained, and the text that its own program is published with.
models=${STRATA_MODELS:-$srcdir/../shared/models}
if [ -e "$models/stories260K.bin" ] && [ -e "$models/tok512.bin" ]; then
    python3 "$srcdir/examples/language/decoder.py" "$models/stories260K.bin" \
        -o stories.ini >"$log" 2>&1
    result $? 'a checkpoint of llama2.c becomes a network'
    cp "$models/tok512.bin" stories.tokenizer.bin
    expect 0 "^Lily didn't want to help her mom, so she\$" 'which tells its story' \
        "$strata" generate stories.ini --length 200
    test "$(cksum <out)" = '3945065820 465'
    result $? 'byte for byte as published'
    "$strata" generate stories.ini --prompt 'Once upon a time, there' --length 194 >half.out
    cmp -s out half.out
    result $? 'and as well behind its beginning'
else
    skip 'the published text of a checkpoint' "no stories260K.bin and tok512.bin in $models"
fi
finish
