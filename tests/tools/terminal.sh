#!/bin/sh
# TAP: nothing that a terminal would obey reaches it from a file, a network or a plugin;
# errors with a place read as a compiler's; a module cannot end the command as if all were
# well.
. "${srcdir:-.}/tests/tap.sh"
cd "$scratch" || exit 99
digits=$srcdir/examples/digits/digits.ini image=$srcdir/examples/digits/images/3-011.pgm
escape=$(printf '\033') turned=$(printf '\342\200\256') second=$(printf '\302\233')

cp "$digits" d.ini
cp "${digits%ini}safetensors" .

# clean CLAIM COMMAND...: its output, which is not empty, has no such character.
clean() {
    claim=$1
    shift
    "$@" >out 2>&1 </dev/null
    cp out log
    [ -s out ] && ! LC_ALL=C grep -q "[$(printf '\001-\010\013-\037\177')]" out &&
        ! LC_ALL=C grep -qF "$turned" out && ! LC_ALL=C grep -qF "$second" out
    result $? "$claim"
}

for kind in "escape:$escape[31m" "direction:$turned" "control:$second"; do
    name=${kind%%:*} text=${kind#*:}
    printf 'red%s\n' "$text" >labels.txt
    cp "$digits" "a$text.ini"
    [ $name = escape ] || expect 0 'red\?' "a label's $name is a question mark" $strata run d.ini "$image" \
        --top 10 --set network.labels=labels.txt
    for form in table md csv json jsonl; do
        clean "a label's $name is not printed as $form" $strata run d.ini "$image" \
            --top 10 --set network.labels=labels.txt \
            -o $form
        clean "a network's $name is not, by explain -o $form" $strata explain \
            "a$text.ini" --reformats -o $form
    done
    clean "nor by build" $strata build "a$text.ini" -o "a$text.engine"
    clean "nor by inspect" $strata inspect "a$text.engine"
    clean "nor by inspect -o json" $strata inspect "a$text.engine" -o json
    clean "nor by compare" $strata compare "a$text.ini" "a$text.ini"
    clean "nor by bench" $strata bench "a$text.ini" --iterations 1 --duration 0 --warmup 0
    clean "nor by profile" $strata profile "a$text.ini" --runs 1
    clean "nor by describe" $strata describe "a$text"
    clean "nor by an unknown command" $strata "a$text"
    clean "nor by an unknown option" $strata run "--a$text"
    clean "nor by a usage error" $strata list --modules "a$text"
    clean "nor where a file is missing" $strata run "no$text.ini"
    mkdir -p "folder$text"
    clean "nor by list" env STRATA_PLUGIN_PATH="rel$text" $strata list --rejected
    clean "nor by doctor" $strata doctor --plugin-path "$scratch/folder$text"
    sed "s/^kind = max/kind = max$text/" "$digits" >bad.ini
    clean "nor from a line of an INI file" $strata run bad.ini
    printf 'strata-costs 1\ndevice %s\n' "$text" >bad.costs
    clean "nor from a cost file" $strata run "$digits" --costs bad.costs
    printf '{"plan": 1, "nodes": [{"name": "a%s", "impl": "b"}]}' "$text" >bad.plan
    clean "nor from a saved plan" $strata diff bad.plan bad.plan
done
head -c 4000 "$strata" >binary.ini
clean 'nothing of a binary file is printed' $strata run binary.ini
printf 'A\200B\300\257C\355\240\200D \342\200\n[x\n' >high.ini
$strata run high.ini >log 2>&1
iconv -f UTF-8 -t UTF-8 log >out 2>>log
result $? 'and what is printed is UTF-8'

# Errors with a place begin with it, others with the program's name.
printf '[network]\nformat = 1\noutputs = y\n[layer y]\ntype = Softmax\naxes = 1\n' >bad.ini
expect 2 '^bad.ini:6:1: error: unknown key' 'an INI error begins with its place' \
    $strata run bad.ini
expect 2 '^bad.costs:2: error: ' 'so does that of a cost file' \
    $strata run "$digits" --input random:1 --costs bad.costs
printf '{\n "plan": ' >cut.plan
expect 2 '^cut.plan:2:[0-9]+: error: ' 'and of a saved plan' $strata diff cut.plan cut.plan
expect 2 '^--set build.precision=x: error: ' 'an option is the place of its own error' \
    $strata run d.ini --set build.precision=x
expect 2 '^strata: error: nosuch.ini: ' 'others name the program' $strata run nosuch.ini
if command -v vim >/dev/null 2>&1; then
    $strata run bad.ini 2>errors
    vim -es -u NONE -c 'cgetfile errors' -c 'redir! > place' -c 'clist' -c 'redir END' \
        -c 'qa!' </dev/null >/dev/null 2>&1
    expect 0 'bad.ini:6' 'vim finds the place' cat place
else
    skip 'vim finds the place' 'no vim here'
fi

# A module whose constructor, or entry, calls exit.
module() { # module FILE CODE
    sed "s/^STRATA_MODULE/#include <stdlib.h>\n&/" \
        "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" >"$1.c"
    printf '\n%s\n' "$2" >>"$1.c"
    $CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" "$1.c" -o "$1.so" 2>log
}
sed 's/Softmax/org.example::LeakyReLU/; s/^axes.*//; s/^\[layer/[input x]\nshape = 1\n&/' \
    bad.ini >leaky.ini
mkdir modules
module modules/leaky '__attribute__((constructor)) static void go(void) { exit(0); }'
expect 2 'modules/leaky.so: .*exit' 'exit(0) in a constructor is an error that names it' \
    $strata run leaky.ini random:1 --plugin-path "$scratch/modules"
module modules/leaky '__attribute__((constructor)) static void go(void) { exit(1); }'
expect 2 'modules/leaky.so: .*exit' 'exit(1) is no mismatch' \
    $strata run leaky.ini random:1 --plugin-path "$scratch/modules"
expect 0 'constructor called exit\(1\)' 'list --rejected tells its code' \
    $strata list --rejected --plugin-path "$scratch/modules"
expect 0 "^$scratch/modules/leaky.so +constructor" 'a relative folder is one of the working folder' \
    $strata list --rejected --plugin-path /none:modules
gone() { # gone FOLDERS: the working folder is removed
    mkdir gone && (cd gone && rmdir ../gone && $strata list --rejected --plugin-path "$1")
}
expect 0 "^$scratch/modules/leaky.so +constructor" 'an absolute one needs no working folder' \
    gone "$scratch/modules"
expect 2 "^strata: error: --plugin-path 'x': the working folder: No such file" \
    'and a relative one says what is missing' gone x
# Of several types that are missing, each says why.
mkdir rejected
$CC -shared -fPIC -DSTRATA_ABI_REQUIRED_MINOR=99 -I"$srcdir/include" -I"$builddir/include" \
    "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" -o rejected/bad.so 2>log
sed 's/^\[layer y.*/[layer z]\ntype = Nosuch\ninputs = x\n&\ninputs = z/' leaky.ini >missing.ini
expect 2 'bad.so has org.example::LeakyReLU, but was rejected: needs ABI 1.99' \
    'the second type that is missing says why' \
    $strata run missing.ini random:1 --plugin-path "$scratch/rejected"
# A run that a signal ends says in whose code.
sed 's/const params \*p = r->params;/&\n    raise(SIGSEGV);/; 1a#include <signal.h>' \
    "$srcdir/examples/plugins/leaky_relu/leaky_relu.c" >crash.c
$CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" crash.c -o crash.so 2>log
claim='a plugin that ends the process is named'
if [ -n "${SANITIZER_CFLAGS:-}" ]; then
    skip "$claim" 'the sanitizer has the last word'
else
    expect 139 'ended by SIGSEGV in .*/crash.so \(at 0x[0-9a-f]+\); `strata check`' "$claim" \
        $strata run leaky.ini random:1 --plugin ./crash.so --costs analytic
    cp crash.so libcustom.so
    expect 139 'ended by SIGSEGV in .*/libcustom.so \(at 0x' 'whatever its name is' \
        $strata run leaky.ini random:1 --plugin ./libcustom.so --costs analytic
    long=$(printf '%0200d' 0)
    long=$long/$long/$long/$long/$long/$long/$long/$long/$long/$long
    mkdir -p "$long" && cp crash.so "$long"
    expect 139 'crash.so \(at 0x[0-9a-f]+\); `strata check` of that file .* does$' \
        'and however long' $strata run leaky.ini random:1 --plugin "./$long/crash.so" \
        --costs analytic
    sed 's/raise(SIGSEGV)/*(volatile int *)8 = 1/' crash.c >direct.c
    $CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" direct.c -o direct.so 2>log
    expect 139 'ended by SIGSEGV in .*/direct.so \(at 0x' 'or how' \
        $strata run leaky.ini random:1 --plugin ./direct.so --costs analytic
    module loads '__attribute__((constructor)) static void go(void) { abort(); }'
    expect 134 'ended by SIGABRT while .*/loads.so was loaded; `strata check`' 'or when' \
        $strata run leaky.ini random:1 --plugin ./loads.so --costs analytic
    sed 's/raise(SIGSEGV)/exit(7)/; s/signal.h/stdlib.h/' crash.c >leaves.c
    $CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" leaves.c -o leaves.so 2>log
    expect 2 'ended by exit in .*/leaves.so \(at 0x[0-9a-f]+\); `strata check`' \
        'an exit is no silent end' \
        $strata run leaky.ini random:1 --plugin ./leaves.so --costs analytic
    sed 's/raise(SIGSEGV)/return 77/' crash.c >mute.c
    $CC -shared -fPIC -I"$srcdir/include" -I"$builddir/include" mute.c -o mute.so 2>log
    expect 2 'run: it returned 77 \(unknown status\) without a message' \
        'what fails without a word is told so' \
        $strata run leaky.ini random:1 --plugin ./mute.so --costs analytic
    expect 1 'run called exit\(7\)' 'and the checker knows it' \
        $strata check ./leaves.so --quick
    expect 1 'run was killed by SIGSEGV' 'and the checker tells which call' \
        $strata check ./crash.so --quick
fi

# Texts go out through one file.
expect 0 '^tools/bench/print.c tools/completion.c tools/main.c tools/options.c tools/print.c tools/tool.c $' \
    'names are printed in one place' sh -c "cd '$srcdir' && grep -lE \
        '(^|[^a-z_])(v?printf\(|fprintf\(stderr|json_dumpf\()' -r tools --include=*.c |
        sort | tr '\n' ' '"
finish
