/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of the command fails once: it says so and leaves nothing under the
 * names it was given, or all that it prints and writes is as without the fault. About
 * twelve of a command's, from a random first one; all of them with STRATA_TEST_LONG.
 */
int strata_main(int argc, char **argv);
#define main strata_main /* of the command */
#include "tools/main.c"
#undef main

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/network/import/model_text.h"
#include "tests/support/fault.h"
#include "tests/support/scratch.h"

enum { MOST_WORDS = 12, MOST_FILES = 8 };

static const struct line {
    const char *name;
    const char *words[MOST_WORDS]; /* '@': in the scratch folder, '%': of the sources */
    const char *files[MOST_FILES]; /* that it writes, in the scratch folder */
    bool varies;                   /* times are in what it prints and writes */
} lines[] = {
    {"list", {"list", "-o", "json"}, {0}},
    {"describe", {"describe", "Convolution", "-o", "@a.ini"}, {"a.ini"}},
    {"import",
     {"import", "@m.onnx", "-o", "@m.ini", "--report", "@m.json"},
     {"m.ini", "m.safetensors", "m.json"}},
    {"explain",
     {"explain", "%examples/digits/digits.ini", "--svg", "@a.svg", "--tensors",
      "--verify"},
     {"a.svg"}},
    {"compare",
     {"compare", "%examples/digits/digits.ini", "--no-fusion", "--precisions",
      "fp32,fp16", "--dump", "conv1", "--folder", "@."},
     {"conv1.a.npy", "conv1.b.npy"}},
    {"build", {"build", "%examples/digits/digits.ini", "-o", "@a.engine"}, {"a.engine"}},
    {"quantise",
     {"quantise", "%examples/digits/digits.ini", "--data",
      "%examples/digits/images/3-011.pgm", "-o", "@q.ini", "--save-ranges", "@q.ranges"},
     {"q.ini", "q.safetensors", "q.ranges"}},
    {"new-layer",
     {"new-layer", "Foo", "-C", "@."},
     {"foo.c", "foo.ini", "Makefile", "configure.ac", "Makefile.am", "CMakeLists.txt",
      "README.md", ".gitignore"}},
    {"print", {"inspect", "--print", "%examples/digits/digits.ini"}, {0}},
    {"profile",
     {"profile", "%examples/digits/digits.ini", "--runs", "2", "--html", "@a.html"},
     {"a.html"},
     .varies = true},
    {"run",
     {"run", "%examples/digits/digits.ini", "%examples/digits/images/3-011.pgm"},
     {0}},
};

static const char model[] = "ir 8\nopset 13\ninput x f 2x6\ninit w f 6x1 1 2 3 4 5 6\n"
                            "node MatMul x,w -> y\noutput y f 2x1\n";

static void open_faults(void)
{
    struct message m = model_bytes(model);
    scratch_make();
    spill("m.onnx", m.bytes, m.size);
    free(m.bytes);
    setenv("STRATA_COSTS", "analytic", 1);
    unsetenv("STRATA_CHECK");
    fault_json(false);
}

TestSuite(tool_faults, .init = open_faults, .fini = scratch_remove, .timeout = 3600);

/* ---- one run --------------------------------------------------------------------------
 */

struct outcome {
    int status; /* of waitpid */
    long calls; /* allocations */
    struct blob out, err, files[MOST_FILES];
};

static void close_outcome(struct outcome *o)
{
    free(o->out.bytes);
    free(o->err.bytes);
    for (int i = 0; i < MOST_FILES; i++)
        free(o->files[i].bytes);
}

/* In a process of its own, which tells its calls by a file. */
static void become(const struct line *l, long at)
{
    char words[MOST_WORDS][1200], *argv[MOST_WORDS + 2] = {"strata"};
    int argc = 1;
    for (; argc <= MOST_WORDS && l->words[argc - 1]; argc++) {
        const char *word = l->words[argc - 1];
        const char *folder = *word == '@' ? scratch : env_or("srcdir", ".");
        const bool path = *word == '@' || *word == '%';
        argv[argc] = words[argc - 1];
        snprintf(words[argc - 1], sizeof words[0], "%s%s%s", path ? folder : "",
                 path ? "/" : "", word + path);
    }
    cr_assert(freopen(in_scratch("out"), "w", stdout) &&
              freopen(in_scratch("err"), "w", stderr));
    optind = 0;
    fault_arm(FAULT_MEMORY, at, false);
    const int code = strata_main(argc, argv);
    const long calls = fault_disarm();
    fflush(stderr);
    FILE *f = fopen(in_scratch("calls"), "w");
    if (f) {
        fprintf(f, "%ld", calls);
        fclose(f);
    }
    _exit(code);
}

static struct outcome run(const struct line *l, long at)
{
    struct outcome o = {0};
    for (int i = 0; i < MOST_FILES && l->files[i]; i++)
        unlink(in_scratch(l->files[i]));
    unlink(in_scratch("calls"));
    fflush(NULL);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0)
        become(l, at);
    cr_assert_eq(waitpid(child, &o.status, 0), child);
    o.out = slurp(in_scratch("out"));
    o.err = slurp(in_scratch("err"));
    o.err.bytes[o.err.size] = '\0';
    for (int i = 0; i < MOST_FILES && l->files[i]; i++)
        if (access(in_scratch(l->files[i]), F_OK) == 0)
            o.files[i] = slurp(in_scratch(l->files[i]));
    FILE *f = fopen(in_scratch("calls"), "r");
    cr_assert(!f || fscanf(f, "%ld", &o.calls) == 1);
    if (f)
        fclose(f);
    return o;
}

/* ---- what may come of it --------------------------------------------------------------
 */

static bool same(const struct line *l, const struct blob *a, const struct blob *b)
{
    if (l->varies)
        return !a->bytes == !b->bytes;
    return !a->bytes == !b->bytes && a->size == b->size &&
           (!a->bytes || memcmp(a->bytes, b->bytes, a->size) == 0);
}

static void expect_whole(const struct line *l, long at, const struct outcome *o,
                         const struct outcome *right)
{
    cr_expect(same(l, &o->out, &right->out), "%s, allocation %ld: other output, status 0",
              l->name, at);
    for (int i = 0; i < MOST_FILES && l->files[i]; i++)
        cr_expect(same(l, &o->files[i], &right->files[i]),
                  "%s, allocation %ld: another %s", l->name, at, l->files[i]);
}

/* A file that was written before what failed is whole. */
static void expect_told(const struct line *l, long at, const struct outcome *o,
                        const struct outcome *right)
{
    const char *text = (const char *)o->err.bytes;
    cr_expect(strstr(text, "memory") || strstr(text, "cannot start"),
              "%s, allocation %ld: status %d, '%s'", l->name, at, WEXITSTATUS(o->status),
              text);
    for (int i = 0; i < MOST_FILES && l->files[i]; i++)
        cr_expect(!o->files[i].bytes || same(l, &o->files[i], &right->files[i]),
                  "%s, allocation %ld: part of %s is left", l->name, at, l->files[i]);
}

static void fail_each(const struct line *l)
{
    struct outcome right = run(l, 0);
    cr_assert(WIFEXITED(right.status) && right.calls > 50, "%s: %ld calls, %s", l->name,
              right.calls, (char *)right.err.bytes);
    cr_assert_eq(WEXITSTATUS(right.status), 0, "%s: %s", l->name,
                 (char *)right.err.bytes);
    const long step = getenv("STRATA_TEST_LONG") ? 1 : 1 + right.calls / 12;
    long told = 0;
    for (long at = 1 + rand() % step; at <= right.calls; at += step) {
        struct outcome o = run(l, at);
        cr_expect(WIFEXITED(o.status), "%s, allocation %ld: signal %d, %s", l->name, at,
                  WTERMSIG(o.status), (char *)o.err.bytes);
        if (WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0)
            expect_whole(l, at, &o, &right);
        else if (WIFEXITED(o.status))
            expect_told(l, at, &o, &right);
        told += WIFEXITED(o.status) && WEXITSTATUS(o.status) != 0;
        close_outcome(&o);
    }
    cr_expect_gt(told, 0, "%s copes with all", l->name);
    close_outcome(&right);
}

Test(tool_faults, a_command_that_lacks_memory_says_so_or_does_all_of_it)
{
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    fprintf(stderr, "# seed %u\n", seed);
    for (size_t i = 0; i < ARRAY_LENGTH(lines); i++)
        fail_each(&lines[i]);
}
