/* SPDX-License-Identifier: Apache-2.0
 *
 * Pointwise's programs as CUDA source: what is written for a program, and that the text
 * before it defines all that a program may call.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/pointwise/source.h"

TestSuite(pointwise_source, .timeout = 60);

static const struct source_kind halves = {.dtype = STRATA_FP16, .flat = 1};

static int fail(strata_error *err, int code, const char *format, ...)
{
    (void)err, (void)format;
    return code;
}

static struct program parse(const char *text, int32_t n_in)
{
    const strata_host host = {.fail = fail};
    const strata_pointwise params = {{text, strlen(text)}};
    const strata_node node = {.n_in = n_in, .params = &params, .host = &host};
    struct program p;
    cr_assert_eq(program_parse(&p, &node), STRATA_OK, "%s", text);
    return p;
}

/* How the prelude begins to define an operation, for its operands and numbers. */
static const char *definition(const struct program_operation *o)
{
    return o->operands == 3   ? "float op_"
           : o->operands == 2 ? "TWO("
           : o->numbers       ? "KIND("
                              : "(";
}

static char *read_file(const char *name)
{
    const char *source = getenv("srcdir");
    char path[4096], *text = calloc(1, 1 << 16);
    cr_assert(text);
    snprintf(path, sizeof path, "%s/%s", source ? source : ".", name);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    cr_assert_lt(fread(text, 1, 1 << 16, file), (size_t)(1 << 16));
    fclose(file);
    return text;
}

Test(pointwise_source, the_prelude_defines_every_operation)
{
    char *prelude = read_file("plugins/pointwise/prelude.inc"), line[128];
    int found = 0;
    for (int32_t op = 0; op < POINTWISE_END; op++) {
        struct program_operation o;
        if (!program_operation(op, &o))
            continue;
        snprintf(line, sizeof line, "%s%s%c", definition(&o), o.name,
                 o.operands == 3 ? '(' : ',');
        cr_expect(strstr(prelude, line), "operation %d: no \"%s\"", (int)op, line);
        found++;
    }
    cr_expect_geq(found, 60);
    free(prelude);
}

Test(pointwise_source, steps_are_calls_on_inputs_and_kept_results)
{
    static char text[SOURCE_SIZE];
    const struct program p = parse("exp x0, product r0 x1, clip x1 -1.5 2, sub r1 r2", 2);
    const char *const lines[] = {
        "typedef half T;",
        "#define FLAT 1\n",
        "k0 = op_exp(x0);",
        "k0 = op_product(k0, x1);",
        "k1 = op_clip(x1, __uint_as_float(0xbfc00000u), __uint_as_float(0x40000000u));",
        "k0 = op_sub(k0, k1);",
        "return k0;"};
    const char *at = text;
    cr_assert_gt(source_write(text, sizeof text, &p, &halves), 0);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *next = strstr(at, lines[i]);
        cr_assert(next, "no \"%s\" behind the one before:\n%s", lines[i], text);
        at = next;
    }
}

Test(pointwise_source, inputs_of_one_element_are_no_packs)
{
    static char text[SOURCE_SIZE];
    const struct program p = parse("select x0 x1 x2", 3);
    const struct source_kind kind = {
        .dtype = STRATA_BF16, .one = 2, .truth = 1, .flat = 1};
    cr_assert_gt(source_write(text, sizeof text, &p, &kind), 0);
    cr_expect(strstr(text, "pack<uint8_t, N> x0;"));
    cr_expect_not(strstr(text, "> x1;"));
    cr_expect(strstr(text, "s1 = value(*(const T *)j.x[1]);"));
    cr_expect(strstr(text, "pack<T, N> x2;"));
}

Test(pointwise_source, the_longest_program_fits)
{
    static char text[SOURCE_SIZE];
    char program[1024] = "thresholded_relu x0 1e-30 0.3";
    for (int i = 1; i < PROGRAM_STEPS; i++)
        snprintf(program + strlen(program), sizeof program - strlen(program),
                 ", thresholded_relu r%d 1e-30 0.3", i - 1);
    const struct program p = parse(program, PROGRAM_INPUTS);
    for (int flat = 0; flat < 2; flat++) {
        const struct source_kind kind = {
            .dtype = STRATA_FP32, .truth = 255, .flat = flat};
        cr_expect_gt(source_write(text, sizeof text, &p, &kind), 0);
    }
}

Test(pointwise_source, text_that_does_not_fit_is_refused)
{
    static char text[SOURCE_SIZE];
    const struct program p = parse("sum x0 x1, gelu r0", 2);
    const int length = source_write(text, sizeof text, &p, &halves);
    cr_assert_gt(length, 0);
    cr_expect_eq((size_t)length, strlen(text));
    cr_expect_eq(source_write(text, (size_t)length, &p, &halves), -1);
    cr_expect_eq(source_write(text, (size_t)length + 1, &p, &halves), length);
}
