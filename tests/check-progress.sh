#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TAP: silent rules count what is out of date, as scripts/progress.mk promises. On a small
# tree of Automake's shape: goals make others in the same folder, and want the same objects.
. "${srcdir:-.}/tests/tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL PROGRESS_FOLDER PROGRESS_DONE PROGRESS_TOTAL
mkdir "$scratch/tree" && cd "$scratch/tree" || exit 99

cat >Makefile <<END
abs_builddir = $scratch/tree
am__v_CC_0 = @echo "  CC      " \$@;
am__v_GEN_0 = @echo "  GEN     " \$@;
am__v_at_0 = @
AM_V_CC = \$(am__v_CC_\$(V))
AM_V_GEN = \$(am__v_GEN_\$(V))
V = 0
all: config.h
	@\$(MAKE) all-am
all-am: one two
	@\$(MAKE) one three
config.h: stamp
	@test -f \$@ || touch \$@
one two: %: a.o %.o
	\$(AM_V_GEN)cat a.o \$*.o >\$@
three: three.o b.o
	\$(AM_V_GEN)cat three.o b.o >\$@
%.o: %.c config.h
	\$(AM_V_CC)echo \$(WORDS) >\$@
-include $srcdir/scripts/progress.mk
END
touch a.c b.c one.c two.c three.c config.h
sleep 0.01
touch stamp

build() { # build ARGUMENT...: the lines of progress, and in $log all that is said
    "$MAKE" --no-print-directory "$@" >"$log" 2>&1 && sed -n '/^\[/p' "$log" >lines
}
counts() { # counts N: [1/N] to [N/N], each once
    seq "$1" | sed "s,.*,[&/$1]," | sort >want
    sed 's/ .*//' lines | sort | diff want - >>"$log"
}

build && counts 8
result $? 'a build counts every target of all its makes once'
build && ! grep -q '^\[' lines
result $? 'one that is up to date says nothing'
sleep 0.01
touch b.c
build && counts 2 && grep -qx '\[1/2\] CC b.o' lines && grep -qx '\[2/2\] GEN three' lines
result $? 'a later build counts what is out of date'
touch a.c
build two && counts 2
result $? 'a goal counts its own'
rm -f ./*.o
build -j8 && counts 8
result $? 'jobs at once share one count'
rm -f ./*.o
build -k WORDS="\"it's  so\"" three && counts 3 && grep -qx "it's  so" three.o
result $? 'flags and variables reach the count'
rm -f ./*.o
build V=1 && ! grep -q '^\[' lines && grep -q '^echo' "$log"
result $? 'V=1 shows the commands'
rm -f ./*.o
build -n && ! ls ./*.o >>"$log" 2>&1
result $? 'a dry run makes nothing'
finish
