/* SPDX-License-Identifier: Apache-2.0
 *
 * `strata check` on layers that break one rule each: it names the rule and the callback,
 * and lives on, as `strata list` does. The layers are tests/faulty/layer.c, with a fault
 * put in by -D.
 */
#include "tests/faulty/fault.h"

static const struct fault faults[] = {
    /* the file */
    {"exports a symbol", "-DEXPORTED='STRATA_EXPORT int init; int init;'", "exports",
     "init"},
    {"prints", "-DRUN_END='printf(\"done\\n\")'", "prints", "done"},
    {"constructor crashes", "-DCONSTRUCTOR=CRASH", "crash", "constructor"},
    {"constructor hangs", "-DCONSTRUCTOR=HANG", "hang", "constructor"},
    {"constructor exits", "-DCONSTRUCTOR='exit(0)'", "exit", "constructor"},
    {"constructor starts a thread",
     "-DCONSTRUCTOR='pthread_t t; pthread_create(&t, 0, (void*(*)(void*))pause, 0)'",
     "thread", ""},
    {"constructor leaves a file open", "-DCONSTRUCTOR='open(\"/dev/null\", 0)'",
     "descriptor", ""},
    {"entry is slow", "-DENTRY='usleep(200000)'", "slow-entry", ""},
    {"constructor changes the folder", "-DCONSTRUCTOR='if (chdir(\"/\")) abort()'",
     "folder", ""},
    {"constructor changes umask", "-DCONSTRUCTOR='umask(0)'", "umask", ""},
    {"constructor takes a signal", "-DCONSTRUCTOR='signal(SIGINT, SIG_IGN)'", "signals",
     "SIGINT"},
    {"entry crashes", "-DENTRY=CRASH", "crash", "entry"},
    {"entry hangs", "-DENTRY=HANG", "hang", "entry"},
    {"entry exits", "-DENTRY='exit(3)'", "exit", "exit(3)"},
    {"entry changes the locale",
     "-DENTRY='setlocale(LC_ALL, \"C.UTF-8\"); setlocale(LC_ALL, \"C.utf8\")'", "locale",
     ""},
    {"entry answers once", "-DENTRY='if (counter++) return 0'", "tables-change", ""},
    {"extension answers prefixes",
     "-DEXTENSION='if (strncmp(id, \"strata.\", 7) == 0) "
     "return &table'",
     "extension-answer", ""},
    {"extension crashes", "-DEXTENSION=CRASH", "crash", "extension"},
    /* attributes and shapes */
    {"attribute's bound divides by zero",
     "-DLEAST=0 -DSHAPE='counter = 4 / (int)p->parts'", "crash",
     "shape was killed by SIGFPE"},
    {"shape writes no shape", "-DNO_SHAPE", "untested", "shape gives output 0 rank 0"},
    {"shape refuses all without a word", "-DSHAPE='return 12345'", "untested",
     "shape returned 12345 without a message"},
    {"shape crashes", "-DSHAPE=CRASH", "crash", "shape"},
    {"shape hangs", "-DSHAPE=HANG", "hang", "shape"},
    {"shape exits", "-DSHAPE='_exit(0)'", "exit", "shape"},
    {"shape gives no rank", "-DSHAPE='if (n->in[0].rank == 5) n->out[0].rank = 9'",
     "shape-invalid", "rank 9"},
    {"shape gives negative dims", "-DSHAPE='n->out[0].dims[0] -= n->in[0].dims[0] == 0'",
     "shape-invalid", "-1"},
    {"shape depends on the call", "-DSHAPE='n->out[0].dims[0] += ++counter % 2'",
     "shape-impure", ""},
    {"shape changes params", "-DSHAPE='((struct params *)n->params)->bias += 1'",
     "params-modified", ""},
    {"shape refuses without a word",
     "-DSHAPE='if (n->in[0].dims[0] == 0) return STRATA_EINVAL'", "message-missing",
     "shape"},
    {"shape reports but returns 0",
     "-DSHAPE='if (n->in[0].dims[0] == 0) (void)STRATA_FAIL(n, STRATA_EINVAL, "
     "\"empty\")'",
     "status-lost", "empty"},
    /* values and memory */
    {"wrong for negative values", "-D'ELEMENT(x, b)=(x < 0 ? x : x + b)'", "value-wrong",
     "should be"},
    {"defines one element too many",
     "-D'DEFINED(x, bias)=(out[0][n->out[0].count] = 1, x + bias)'", "reference-bounds",
     "wrote past"},
    {"defines one element before", "-D'DEFINED(x, bias)=(out[0][-1] = 1, x + bias)'",
     "reference-bounds", "wrote before"},
    {"defines an output as large as its input",
     "-D'DEFINED(x, bias)=(i ? 0 : (out[0][2 * n->out[0].count - 1] = 1), x + bias)'",
     "reference-bounds", "wrote past"},
    {"writes one element too many", "-DRUN_END='y[n] = 0'", "bounds", "output 0"},
    {"writes one element before", "-DRUN_END='y[-1] = 0'", "bounds", "before"},
    {"writes past its workspace", "-DRUN_END='work[n] = 0'", "bounds", "workspace"},
    {"writes past its ctx", "-DRUN_END='((char *)r->ctx)[64] = 0'", "bounds", "ctx"},
    {"leaves pad lanes", "-DPADS", "pad-dirty", "pad"},
    {"leaves the last element", "-DWRITTEN='n - 1'", "unwritten", ""},
    {"reads stale workspace",
     "-DRUN_BEGIN='float old = work[0]' "
     "-DRUN_END='if (old == old) y[0] += 1'",
     "stale-read", ""},
    {"modifies its input", "-DRUN_END='((float *)x)[0] = 0'", "input-modified", ""},
    {"modifies its state", "-DRUN_END='((struct state *)s)->table = 0'", "state-modified",
     ""},
    {"run fails without a word", "-DRUN_BEGIN='if (n > 40) return STRATA_EINVAL'",
     "message-missing", "run"},
    {"run fails", "-DRUN_BEGIN='if (n > 40) return STRATA_FAIL(r, 1, \"too long\")'",
     "run-failed", "too long"},
    {"run reports but returns 0",
     "-DRUN_END='if (n > 40) (void)STRATA_FAIL(r, STRATA_EINVAL, \"late\")'",
     "status-lost", "late"},
    {"workspace for a small batch is larger",
     "-DWORKSPACE='const long images = n->out[0].dims[0]; "
     "return (size_t)(1 << 20) / (images + !images)'",
     "workspace-grows", ""},
    {"workspace overflows", "-DWORKSPACE='return SIZE_MAX'", "workspace-size", ""},
    {"run changes the rounding mode", "-DRUN_END='fesetround(FE_UPWARD)'", "rounding",
     ""},
    {"run flushes denormals to zero",
     "-DRUN_END='__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040)'", "rounding",
     ""},
    /* ends */
    {"accept crashes", "-DACCEPT=CRASH", "crash", "accept"},
    {"accept hangs", "-DACCEPT=HANG", "hang", "accept"},
    {"accept refuses without a word", "-DACCEPT='return STRATA_EUNSUPPORTED'",
     "message-missing", "accept"},
    {"workspace crashes", "-DWORKSPACE=CRASH", "crash", "workspace"},
    {"setup crashes", "-DSETUP=CRASH", "crash", "setup"},
    {"setup hangs", "-DSETUP=HANG", "hang", "setup"},
    {"ctx_open crashes", "-DOPEN=CRASH", "crash", "ctx_open"},
    {"ctx_open aborts", "-DOPEN='abort()'", "crash", "SIGABRT"},
    {"run crashes", "-DRUN_BEGIN='if (n > 40) CRASH'", "crash", "run was killed"},
    {"run hangs", "-DRUN_BEGIN=HANG", "hang", "run"},
    {"run exits", "-DRUN_BEGIN='exit(7)'", "exit", "exit(7)"},
    {"ctx_close crashes", "-DCLOSE=CRASH", "crash", "ctx_close"},
    {"teardown crashes", "-DTEARDOWN=CRASH", "crash", "teardown"},
    {"teardown hangs", "-DTEARDOWN=HANG", "hang", "teardown"},
    /* repetition */
    {"differs from run to run", "-DRUN_END='y[0] += (float)(++counter % 7 == 0)'",
     "nondeterministic", ""},
    {"shares a buffer among contexts", "-DRUN_BEGIN='work = n <= 65536 ? shared : work'",
     "concurrency", ""},
    {"leaks in setup", "-DSETUP='counter += malloc(48) != 0'", "leak",
     "48 bytes|64 bytes"},
    {"differs where a count is not the plainest",
     "-DACCEPT='if (((const struct params *)n->params)->parts != 3) "
     "return STRATA_FAIL(n, STRATA_EUNSUPPORTED, \"parts\")' "
     "-DRUN_END='y[0] += (float)(++counter % 2 == 0)'",
     "nondeterministic", ""},
    {"differs where a count is that of channels",
     "-DACCEPT='if (((const struct params *)n->params)->parts != n->in[0].dims[1] || "
     "n->in[0].dims[1] < 8) return STRATA_FAIL(n, STRATA_EUNSUPPORTED, \"parts\")' "
     "-DRUN_END='y[0] += (float)(++counter % 2 == 0)'",
     "nondeterministic", ""},
    {"leaks in run", "-DRUN_END='counter += malloc(16) != 0'", "leak", ""},
    {"leaks files", "-DOPEN='open(\"/dev/null\", 0)'", "leak", "open files"},
    {"allocates in run",
     "-DRUN_BEGIN='void *spare = malloc(64); counter += spare != 0' "
     "-DRUN_END='free(spare)'",
     "allocates", ""},
    /* what is right most of the time */
    {"reads past its input", "-DRUN_END='y[n - 1] += 0 * x[n]'", "reads-outside", ""},
    {"reads before its input", "-DRUN_END='y[0] += 0 * x[-1]'", "reads-outside", ""},
    {"reads past its workspace", "-DRUN_END='y[0] += 0 * work[n]'", "reads-outside", ""},
    {"keeps its output's address",
     "-DRUN_BEGIN='float **kept = r->ctx; if (!*kept) *kept = y; y = *kept'",
     "keeps-pointer", ""},
    {"keeps its input's address",
     "-DRUN_BEGIN='const float **kept = r->ctx; if (!*kept) *kept = x; x = *kept'",
     "keeps-pointer", ""},
    {"keeps its workspace's address",
     "-DRUN_BEGIN='float **kept = r->ctx; if (!*kept) *kept = work; work = *kept'",
     "keeps-pointer", "workspace"},
    {"computes in its first run alone",
     "-DRUN_BEGIN='int *ran = r->ctx; if ((*ran)++) return STRATA_OK'", "unwritten", ""},
    {"is wrong for 17 channels",
     "-DRUN_END='if (r->out[0].rank > 1 && r->out[0].dims[1] == 17) y[n - 1] += 1'",
     "value-wrong", ""},
    {"is wrong for a batch of 3",
     "-DRUN_END='if (r->out[0].dims[0] == 3 && r->out[0].rank == 4) y[n - 1] += 1'",
     "value-wrong", ""},
    {"is wrong for volumes", "-DRUN_END='if (r->out[0].rank == 5) y[0] += 1'",
     "value-wrong", ""},
    {"counts in 16 bits", "-DWRITTEN='(unsigned short)n'", "value-wrong", ""},
    {"is right for one context alone",
     "-DOPEN='memcpy(shared, &ctx, sizeof ctx)' "
     "-DRUN_END='if (memcmp(shared, &r->ctx, sizeof r->ctx)) y[0] += 1'",
     "concurrency", ""},
    {"ignores strides of its input", "-DFLAGS=STRATA_STRIDED_IN", "value-wrong", ""},
    {"ignores strides of its output", "-DFLAGS=STRATA_STRIDED_OUT", "value-wrong", ""},
    {"ignores that its input is inside another", "-DFLAGS=STRATA_PITCHED_IN",
     "value-wrong", ""},
    {"ignores that its output is inside another", "-DFLAGS=STRATA_PITCHED_OUT",
     "value-wrong", ""},
    {"takes a residual to lie inside another as its output does",
     "-DPADS -DFUSED_BLOCKED=STRATA_EPILOGUE_RESIDUAL "
     "-DFLAGS_BLOCKED='STRATA_PITCHED_IN | STRATA_PITCHED_OUT | STRATA_PAD_DIRTY' "
     "-DADDED='(r->epilogue->flags ? ((const float *)r->epilogue->residual->data)"
     "[at % r->epilogue->residual->size] : 0)'",
     "value-wrong", "output 0"},
    {"adds a residual inside another as if it lay by itself",
     "-DFUSED_BLOCKED=STRATA_EPILOGUE_RESIDUAL "
     "-DFLAGS_BLOCKED=STRATA_PITCHED_RESIDUAL "
     "-DADDED='(r->epilogue->flags ? ((const float *)r->epilogue->residual->data)[at] "
     ": 0)'",
     "value-wrong", "output 0"},
    {"works in place, it says", "-DFLAGS=STRATA_INPLACE_OK -DRUN_BEGIN='y[0] = 0'",
     "value-wrong", ""},
    {"ignores pads, it says",
     "-DFLAGS_BLOCKED=STRATA_PAD_IGNORED -DBLOCKED_END='y[0] += 0 * x[t->size - 1]'",
     "value-wrong", ""},
    {"rounds its input, it says", "-DFLAGS=STRATA_ROUNDS_IN", "rounds-in",
     "inputs rounded to FP16 before: output 0"},
    {"edits its params", "-DRUN_END='((struct params *)r->params)->bias += 1e-9'",
     "params-modified", "params"},
    {"edits a description", "-DRUN_END='((strata_tensor *)r->out)->reserved[3]++'",
     "params-modified", "descriptions of its outputs"},
    {"closes a file of others", "-DRUN_END='close(0)'", "descriptor", ""},
    {"sets a variable", "-DSETUP='setenv(\"OMP_NUM_THREADS\", \"1\", 1)'", "variables",
     ""},
    {"does not look at what malloc gives", "-D'NO_TABLE(n)=CRASH'", "unchecked-memory",
     "setup"},
};

static void check_fault(const struct fault *f, char *output)
{
    check_fault_of("faulty/layer.c", f, output);
    if (!strstr(f->define, "CONSTRUCTOR") && !strstr(f->define, "ENTRY"))
        return; /* list runs nothing else */
    int code = command(output, "list --plugin-path '%s'", scratch);
    cr_expect(code == 0, "%s: list gives %d\n%.1000s", f->what, code, output);
}

TestSuite(check, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

Test(check, every_fault_is_named_and_survived)
{
    char *output = malloc(OUTPUT);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (fault_wanted(&faults[i], i))
            check_fault(&faults[i], output);
    free(output);
}

Test(check, an_exception_is_named)
{
    static char output[OUTPUT];
    const char *file = build("throws.so", "faulty/throws.cc",
                             SHARED " -x c++ -std=c++20 -Wno-missing-field-initializers "
                                    "-lstdc++");
    int code = command(output, "check '%s'", file);
    cr_expect_eq(code, 1, "exit code %d\n%s", code, output);
    cr_expect(names(output, "exception", "no luck"), "%s", output);
}

/* In packed.c. */
Test(check, what_a_layer_does_to_its_weight_is_named)
{
    static const struct fault packed[] = {
        {"keeps the address of a weight it packs", "-DKEEPS", "value-wrong", "should be"},
        {"writes to its weight", "-DWRITES", "weight-modified", "weight 0"},
    };
    static char output[OUTPUT];
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        const struct fault *f = &packed[i];
        const char *file =
            build("packed.so", "faulty/packed.c", SHARED " %s -O1", f->define);
        int code = command(output, "check '%s'", file);
        cr_expect(code == 1 && names(output, f->rule, f->words),
                  "%s: exit code %d, want '%s', got\n%.2000s", f->what, code, f->rule,
                  output);
        check_again(f, output);
    }
    const char *file = build("packed.so", "faulty/packed.c", SHARED " -O1");
    int code = command(output, "check '%s'", file);
    cr_expect_eq(code, 0, "exit code %d\n%s", code, output);
}

Test(check, nothing_is_found_where_nothing_is_wrong)
{
    char *output = malloc(OUTPUT);
    const char *file =
        build("good.so", "faulty/layer.c", SHARED " -O1 -Wall -Wextra -lpthread");
    int code = command(output, "check '%s'", file);
    cr_expect_eq(code, 0, "exit code %d\n%s", code, output);
    cr_expect_not_null(strstr(output, " 0 failed, 0 skipped"), "%s", output);
    code = command(output, "check '%s' --in-process --test values", file);
    cr_expect_eq(code, 0, "in process: exit code %d\n%s", code, output);
    free(output);
}

Test(check, an_impl_that_takes_nothing_tried_is_named)
{
    char *output = malloc(OUTPUT);
    const char *file =
        build("picky.so", "faulty/layer.c",
              SHARED " -O1 -Wall -Wextra -lpthread -DACCEPT='"
                     "return STRATA_FAIL(n, STRATA_EUNSUPPORTED, \"no\")'");
    int code = command(output, "check '%s' --test values", file);
    cr_expect_eq(code, 0, "exit code %d\n%s", code, output);
    cr_expect_not_null(strstr(output, "not tested, as all that was tried is vetoed: c"),
                       "%s", output);
    free(output);
}
