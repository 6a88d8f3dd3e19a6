/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of twice the size takes twice the steps to judge, whatever is in it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/ini/config_text.h"
#include "tests/network/network_text.h"
#include "tests/network/steps.h"

#define SIZE ((size_t)256 << 10) /* bytes of the shorter text */
#define STEPS 256                /* at most, for a byte more; most are bytes cleared */

uint64_t counted_steps;
static bool counts; /* this build does */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    counts = true;
    counted_steps++;
}

/* Copies of a line in which %d is the index, after a head. */
struct pattern {
    const char *name, *head, *line;
};

static char *text_of(const struct pattern *p, size_t size)
{
    char *text = malloc(size + 1);
    size_t used = strlen(p->head);
    cr_assert(text && used < size);
    memcpy(text, p->head, used);
    for (int i = 0;; i++) {
        char line[CONFIG_MAX_LINE];
        const size_t n = (size_t)snprintf(line, sizeof line, p->line, i, i, i);
        if (used + n > size)
            break;
        memcpy(text + used, line, n);
        used += n;
    }
    memset(text + used, '\n', size - used);
    text[size] = '\0';
    return text;
}

/* A table that doubles has doubled once more, hence the hundredth. */
static void expect_linear(const char *name, uint64_t once, uint64_t twice)
{
    if (!counts)
        cr_skip_test("this build does not count steps");
    cr_log_info("%s: %.1f steps a byte, %.2f times for twice", name, (double)once / SIZE,
                (double)twice / (double)once);
    cr_expect_leq(twice, 2 * once + once / 100, "%s: %llu steps, and %llu for twice",
                  name, (unsigned long long)once, (unsigned long long)twice);
    cr_expect_leq(twice, once + STEPS * SIZE, "%s: %llu steps a byte more", name,
                  (unsigned long long)((twice - once) / SIZE));
}

static uint64_t steps_of(const struct pattern *p, size_t size,
                         void (*judge)(const char *text, size_t size))
{
    char *text = text_of(p, size);
    counted_steps = 0;
    judge(text, size);
    const uint64_t taken = counted_steps;
    free(text);
    return taken;
}

static void expect_linear_in(const struct pattern *p, size_t n,
                             void (*judge)(const char *text, size_t size))
{
    for (size_t i = 0; i < n; i++)
        expect_linear(p[i].name, steps_of(&p[i], SIZE, judge),
                      steps_of(&p[i], 2 * SIZE, judge));
}

static void judge_all(struct config *c)
{
    strata_error err = {0};
    for (size_t i = 0; i < config_sections(c); i++)
        config_unknown(c, config_section(c, i), NULL, 0);
    config_finish(c, &err);
    config_free(c);
}

static void judge_config(const char *text, size_t size)
{
    judge_all(parse_with(text, size, NULL));
}

#define TEN(x) x x x x x x x x x x
#define NINE_VARIABLES "a1=1\na2=1\na3=1\na4=1\na5=1\na6=1\na7=1\na8=1\na9=1\n"
Test(linear, text_of_any_kind_is_read)
{
    static const struct pattern patterns[] = {
        {"brackets", "", "["},
        {"blank lines", "", "\n"},
        {"comments", "", ";;;;;;;;;\n"},
        {"equal signs", "[bench]\n", "=\n"},
        {"backslashes", "[bench]\n", "\\\n"},
        {"a pair that goes on", "[bench]\nk = 1 \\\n", " \\\n"},
        {"one key again", "[bench]\n", "k = 1\n"},
        {"unknown sections", "", "[a%d]\n"},
        {"one section again", "", "[bench]\n"},
        {"sections", "", "[layer l%d]\na=1\nb=2\nc=%d\n"},
        {"sections of many keys", "",
         "[layer l%d]\na=1\nb=1\nc=1\nd=1\ne=1\nf=1\ng=1\nh=1\ni=1\nj=1\nk=1\nl=1\nm=1\n"
         "n=1\no=1\np=1\nq=1\nr=1\ns=1\nt=1\nu=1\nv=1\nw=1\nx=1\ny=1\nz=1\naa=1\nbb=1\n"},
        {"lists", "", "[layer l%d]\ninputs = " TEN("a,") TEN("b,") "c\n"},
        {"undefined variables", "", "[layer l%d]\na = ${b}${c}\nd = ${e}\n"},
        {"undefined among many", "[vars]\n" NINE_VARIABLES "[layer a]\n", "k%d = ${b}\n"},
        {"variables", "[vars]\nv = 1\n", "[layer l%d]\na = " TEN("${v}") "\n"},
        {"dollars", "", "[layer l%d]\na = " TEN("$$$$") "\n"},
        {"long variables", "[vars]\nv = " TEN(TEN(TEN("aaaa"))) "\n",
         "[layer l%d]\na = ${v}\n"},
        {"quotes", "", "[layer l%d]\na = \"\"\"\n"},
        {"semicolons", "[layer a]\n", "k = " TEN(";;;;") "\n"},
        {"hashes", "[layer a]\n", "k%d = " TEN("####") "\n"},
        {"bytes above", "", "\xff\xff\xff\xff\n"},
    };
    expect_linear_in(patterns, ARRAY_LENGTH(patterns), judge_config);
}

/* Options, too many to be right. */
static uint64_t steps_of_options(size_t n, bool define)
{
    const char **options = calloc(n, sizeof *options);
    char *texts = calloc(n, 32);
    for (size_t i = 0; i < n; i++) {
        snprintf(texts + 32 * i, 32, define ? "v%zu=${w}" : "layer a%zu.k=1", i);
        options[i] = texts + 32 * i;
    }
    const strata_network_options o = {.struct_size = sizeof o,
                                      .set = options,
                                      .n_set = define ? 0 : n,
                                      .define = options,
                                      .n_define = define ? n : 0};
    const struct pattern sections = {"sections", "", "[input l%d]\n"};
    char *text = text_of(&sections, SIZE);
    counted_steps = 0;
    judge_all(parse_with(text, SIZE, &o));
    free(text);
    free(options);
    free(texts);
    return counted_steps;
}

Test(linear, options_of_any_number_are_put_over)
{
    expect_linear("--set", steps_of_options(4096, false), steps_of_options(8192, false));
    expect_linear("-D", steps_of_options(4096, true), steps_of_options(8192, true));
}

static uint64_t steps_of_includes(int n)
{
    char name[32];
    struct config *c;
    strata_error err = {0};
    char *text = malloc((size_t)n * 32 + 32), *at = text;
    at += sprintf(at, "[include]\n");
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "part%d.ini", i);
        spill(name, "[bench]\n", 8);
        at += sprintf(at, "file = %s\n", name);
    }
    const char *path = spill("all.ini", text, (size_t)(at - text));
    counted_steps = 0;
    cr_assert_eq(config_load(&c, path, NULL, &err), STRATA_OK, "%s", err.message);
    judge_all(c);
    free(text);
    return counted_steps;
}

Test(linear, includes_to_the_limit_are_read, .init = scratch_make, .fini = scratch_remove)
{
    const int most = CONFIG_MAX_FILES - 2;
    expect_linear("includes", steps_of_includes(most / 2), steps_of_includes(most));
}

static void judge_network(const char *text, size_t size)
{
    strata_error err = {0};
    strata_network *net = NULL;
    strata_network_load(&net, spill("net.ini", text, size), registry, NULL, &err);
    strata_network_destroy(net);
}

#define LAYER "[layer l%d]\ntype = "
Test(linear, networks_of_any_kind_are_loaded, .init = network_start, .fini = network_stop)
{
#define FIRST HEAD FILE_WEIGHTS
    static const struct pattern patterns[] = {
        {"a chain", "[network]\nformat = 1\noutputs = l9\n[input x]\nshape = 2 x 6\n",
         LAYER "Pass\n"},
        {"layers in no order", FIRST, LAYER "Pass\ninputs = x\n; %d\n"},
        {"unknown types", FIRST, LAYER "Type%d\n"},
        {"unknown inputs", FIRST, LAYER "Pass\ninputs = l%dx\n"},
        {"lists of known inputs", FIRST, LAYER "Join\ninputs = " TEN("x,") "x%d\n"},
        {"lists of unknown inputs", FIRST,
         LAYER "Join\ninputs = " TEN(TEN("y,")) TEN(TEN("z,")) "x%d\n"},
        {"unknown sources", FIRST, LAYER "Affine\nunits = 4\nweights = v%d:p\n"},
        {"unknown prefixes", FIRST, LAYER "Affine\nunits = 4\nweights = w:p%d\n"},
        {"unknown arrays", FIRST,
         LAYER "Affine\nunits = 4\nweight = w:fc.weight\nbias = w:b%d\n"},
        {"bad attributes", FIRST,
         LAYER "Affine\nunits = x\nmode = %d\nsteps = a\ntaps = 2\n"},
        {"unknown impls", FIRST, LAYER "Pass\nimpl = i%d\nformat = fp16:x\nbogus = 1\n"},
        {"inputs", FIRST, "[input i%d]\nshape = 1 x %d\nmean = 1, 2, 3\n"},
        {"files", FIRST, "[weights w%d]\nfile = none%d\n"},
        {"random weights", FIRST, "[weights w%d]\nrandom = %d\n"},
    };
    spill_weights();
    expect_linear_in(patterns, ARRAY_LENGTH(patterns), judge_network);
}
