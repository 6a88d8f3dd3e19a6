/* SPDX-License-Identifier: Apache-2.0
 *
 * `strata check` on layers that are right for the numbers, sizes and shapes that their
 * author thought of: it names what they do with the others.
 */
#include "tests/faulty/fault.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* y = x + bias: tests/faulty/layer.c. */
static const struct fault shifted[] = {
    {"makes 0 of NaN",
     "-DRUN_END='for (int64_t i = 0; i < n; i++) if (y[i] != y[i]) y[i] = 0'",
     "value-wrong", "should be nan"},
    {"makes 0 of NaN, by definition too",
     "-D'ELEMENT(x, b)=(x + b > 0 ? x + b : 0)' -D'DEFINED(x, b)=(x + b > 0 ? x + b : "
     "0)'",
     "nan-lost", "the reference's output 0"},
    {"clips infinity", "-D'ELEMENT(x, b)=(x > 1e6f ? 1e6f : x + b)'", "value-wrong",
     "should be inf"},
    {"clips negative infinity", "-D'ELEMENT(x, b)=(x < -1e6f ? -1e6f : x + b)'",
     "value-wrong", "should be -inf"},
    {"makes NaN of infinity", "-D'ELEMENT(x, b)=(x + (x - x) + b)'", "value-wrong",
     "should be inf|should be -inf"},
    {"spoils every image by the NaN of one",
     "-DRUN_END='float all = 0; for (int64_t i = 0; i < n; i++) all += 0 * x[i]; y[0] += "
     "all'",
     "value-wrong", "is nan|is -nan"},
    {"divides denormals by themselves",
     "-D'ELEMENT(x, b)=(x == 0 || __builtin_isinf(x) ? x + b : x / (x * x) * (x * x) + "
     "b)'",
     "value-wrong", "is nan|is -nan"},
    {"is wrong above 1000", "-D'ELEMENT(x, b)=(x > 1000 ? 1000 + b : x + b)'",
     "value-wrong", "should be"},
    {"counts in 16 bits above 30000",
     "-D'ELEMENT(x, b)=(x > 3e4f ? (float)(short)(int)x + b : x + b)'", "value-wrong",
     "should be"},
    {"leaves the last column of even rows",
     "-DWRITTEN='n - (r->out[0].rank == 4 && r->out[0].dims[3] % 2 == 0)'", "value-wrong",
     ""},
    {"is wrong for even heights",
     "-DRUN_END='if (r->out[0].rank == 4 && r->out[0].dims[2] % 2 == 0) y[0] += 1'",
     "value-wrong", ""},
    {"knows one value of its attribute", "-D'ELEMENT(x, b)=(x + 0.5f)'", "value-wrong",
     "should be"},
    {"multiplies dims in 32 bits",
     "-fwrapv -DSHAPE='int all = (int)n->in[0].dims[0] * (int)n->in[0].dims[1]; "
     "if (all < 0) n->out[0].dims[0] = all'",
     "shape-invalid", "dim 0 of -"},
    {"leaves pads of the last image",
     "-DBLOCKED_END='if (t->dims[1] % 8 && t->dims[0] > 1) y[t->size - 1] = 2'",
     "pad-dirty", "pad"},
    {"adds the bias to pads",
     "-DBLOCKED_END='if (t->dims[1] % 8) y[t->size - 1] += *s->table'", "pad-dirty",
     "pad"},
    {"computes the first image alone",
     "-DWRITTEN='n / (r->out[0].rank > 3 ? r->out[0].dims[0] : 1)'", "value-wrong", ""},
};

/* y = 1.5*x in FP16: tests/faulty/half.c. */
static const struct fault halves[] = {
    {"reads subnormals as normals",
     "-D'READ(h)=((h & 0x7c00) ? strata_float_of_half(h) : "
     "strata_float_of_half((uint16_t)"
     "(h | 0x400)))'",
     "value-wrong", "should be"},
    {"reads subnormals as 0", "-D'READ(h)=((h & 0x7c00) ? strata_float_of_half(h) : 0)'",
     "value-wrong", "is 0,"},
    {"writes subnormals as 0",
     "-D'WRITE(x)=(x < 6e-5f && x > -6e-5f ? 0 : strata_half_of_float(x))'",
     "value-wrong", "is 0,"},
    {"loses the sign of subnormals",
     "-D'READ(h)=((h & 0x7c00) ? strata_float_of_half(h) : strata_float_of_half(h & "
     "0x7fff))'",
     "value-wrong", "should be -"},
    {"wraps past the largest half",
     "-D'WRITE(x)=(uint16_t)(x > 65504 ? 0x0400 : strata_half_of_float(x))'",
     "value-wrong", "should be"},
    {"overflows on its way",
     "-D'ELEMENT(x)=(strata_float_of_half(strata_half_of_float(6 * x)) / 4)'",
     "value-wrong", "is inf|is -inf"},
    {"makes infinity of NaN", "-D'WRITE(x)=(x != x ? 0x7c00 : strata_half_of_float(x))'",
     "value-wrong", "should be nan"},
    {"reads infinity as 65536",
     "-D'READ(h)=((h & 0x7fff) == 0x7c00 ? 65536 * .5f : strata_float_of_half(h))'",
     "value-wrong", "should be inf"},
    {"keeps 8 bits of 11", "-D'WRITE(x)=(strata_half_of_float(x) & 0xfff8)'",
     "value-wrong", "should be"},
};

/* An N x C beside an N x C x H x W: tests/faulty/gate.c. */
static const struct fault gates[] = {
    {"has a shape that is wrong for even sizes", "-D'WIDTH(w)=((w) / 2 + 1)'",
     "value-wrong", ""},
    {"has a shape that is small for even sizes",
     "-D'WIDTH(w)=((w) < 3 ? 1 : ((w) - 1) / 2 + (w) % 2)'", "bounds", "output 0"},
    {"has a shape that overflows for long rows", "-fwrapv -D'WIDTH(w)=(((w) + 1) / 2)'",
     "shape-invalid", "dim 3 of -"},
    {"has one column too few for odd sizes",
     "-DCOLUMNS='(x->dims[3] + 1) / 2 - (x->dims[3]"
     " > 2 && x->dims[3] % 2)'",
     "value-wrong", ""},
    {"reads past the end of odd rows", "-DLAST=0", "value-wrong", "should be"},
    {"has rows of an even length", "-DROW='(x->dims[3] & ~1)'", "value-wrong", ""},
    {"has one gate for all images", "-DGATE='gate[c]'", "value-wrong", "should be"},
    {"has the gate's dims in reverse", "-DGATE='gate[c * x->dims[0] + n]'", "value-wrong",
     "should be"},
    {"has the wrong step between images", "-DIMAGE='(x->dims[1] * x->dims[2])'",
     "value-wrong", "should be"},
    {"does not look at its attribute", "-DGAIN=1", "value-wrong", "should be"},
    {"makes 1 of a gate of NaN",
     "-DGATE='(gate[n * x->dims[1] + c] != gate[n * x->dims[1] + c] ? 1 : gate[n * "
     "x->dims[1] + c])'",
     "value-wrong", "should be nan"},
    {"modifies its gate", "-DRUN_END='((float *)gate)[0] = 1'", "input-modified",
     "input 1"},
    {"reads past its gate", "-DRUN_END='y[0] += 0 * gate[r->in[1].count]'",
     "reads-outside", ""},
    {"adds in single pixels", "-DRUN_END='if (x->dims[2] * x->dims[3] == 1) y[0] += 1'",
     "value-wrong", ""},
};

/* Integers, absent inputs, two outputs of two types: tests/faulty/typed.c. */
static const struct fault typed[] = {
    {"counts in doubles", "-D'ELEMENT(x)=((int64_t)(double)((x) / 2 * 2) + (x) % 2)'",
     "value-wrong", "should be"},
    {"counts in 32 bits", "-D'ELEMENT(x)=((int64_t)(int32_t)(x))'", "value-wrong",
     "should be"},
    {"writes other truths than 1", "-D'POSITIVE(y)=((y) > 0 ? 255 : 0)'", "value-wrong",
     "is 255, should be 1"},
    {"has one truth for all", "-D'POSITIVE(y)=1'", "value-wrong", "output 1"},
    {"reads an input that is absent", "-D'MASK(m, i)=(m)[i]'", "crash", "run was killed"},
    {"does not look for its last input", "-D'SHIFT(s, i)=0'", "value-wrong", "output 0"},
    {"divides by a dim of 0",
     "-DEMPTY='volatile int64_t part = 8 / n->in[0].dims[0]; (void)part'", "crash",
     "accept was killed by SIGFPE"},
};

TestSuite(numbers, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

Test(numbers, what_is_done_with_odd_numbers_is_named)
{
    check_faults_of("faulty/layer.c", shifted, COUNT(shifted));
}

Test(numbers, faults_of_half_precision_are_named)
{
    check_faults_of("faulty/half.c", halves, COUNT(halves));
}

Test(numbers, faults_in_inputs_of_unequal_shapes_are_named)
{
    check_faults_of("faulty/gate.c", gates, COUNT(gates));
}

Test(numbers, faults_of_integers_and_absent_inputs_are_named)
{
    check_faults_of("faulty/typed.c", typed, COUNT(typed));
}

/* An impl may drop a NaN where it says so, and nothing else. */
Test(numbers, a_dropped_nan_is_allowed_where_it_is_claimed)
{
    static const char drop[] =
        "-DFLAGS='STRATA_INPLACE_OK | STRATA_NAN_DROPPED' -DRUN_END='for (int64_t i = 0; "
        "i < n; i++) if (y[i] != y[i]) y[i] = 0%s'";
    static char output[OUTPUT], define[256];
    snprintf(define, sizeof define, drop, "");
    const char *file =
        build("drop.so", "faulty/layer.c", SHARED " %s -O1 -w -lpthread", define);
    int code = command(output, "check '%s' --test values", file);
    cr_expect_eq(code, 0, "exit code %d\n%s", code, output);
    snprintf(define, sizeof define, drop, "; else if (y[i] > 1e30f) y[i] = 0");
    file = build("more.so", "faulty/layer.c", SHARED " %s -O1 -w -lpthread", define);
    code = command(output, "check '%s' --test values", file);
    cr_expect(code == 1 && names(output, "value-wrong", "should be inf"),
              "exit code %d\n%s", code, output);
}

struct half_case {
    const char *flags;
    int code;
    const char *words;
};

/* Layers of faulty/half.c with `defines`. */
static void check_halves(const char *defines, const struct half_case *cases, size_t n)
{
    static char output[OUTPUT];
    for (size_t i = 0; i < n; i++) {
        const char *file = build("held.so", "faulty/half.c", SHARED " %s %s -O1 -w -lm",
                                 defines, cases[i].flags);
        const int code = command(output, "check '%s' --test values", file);
        cr_expect(code == cases[i].code && strstr(output, cases[i].words),
                  "case %zu: exit code %d\n%s", i, code, output);
    }
}

/* Where the reference says so, and holds it too when it is asked for FP16. */
Test(numbers, what_lies_between_is_held_where_that_is_claimed)
{
    static const char held[] = "-D'ELEMENT(x)=((float)hold(6 * (x), 65504) / 4)' "
                               "-D'DEFINED(x, most)=(hold(6 * (x), most) / 4)' ";
    static const struct half_case cases[] = {
        {"-DREFERENCE_FLAGS=STRATA_HELD_WITHIN", 0, ""},
        {"", 1, "should be"},
        {"-DREFERENCE_FLAGS=STRATA_HELD_WITHIN "
         "-D'WRITE(x)=strata_half_of_float((x) > 16300 ? 1 : (x))'",
         1, "is 1, should be"},
    };
    check_halves(held, cases, COUNT(cases));
}

/* Steps of what is rounded to FP16 before them: few numbers are on the other side. */
Test(numbers, what_lies_between_is_rounded_where_it_is_held)
{
    static const char rounded[] =
        "-D'STEP(x)=((float)__builtin_floor((x) / 1365) * 64)' "
        "-D'ELEMENT(x)=STEP(strata_float_of_half("
        "strata_half_of_float((float)hold(6 * (x), 65504))))' "
        "-D'DEFINED(x, most)=STEP(hold(6 * (x), most))' ";
    static const struct half_case cases[] = {
        {"-DREFERENCE_FLAGS=STRATA_HELD_WITHIN", 0, ""},
        {"", 1, "should be"},
        {"-DREFERENCE_FLAGS=STRATA_HELD_WITHIN "
         "-D'WRITE(x)=strata_half_of_float((x) > 1024 ? (x) - 64 : (x))'",
         1, "should be"},
        {"-DREFERENCE_FLAGS=STRATA_HELD_WITHIN "
         "-D'READ(h)=strata_float_of_half((h) > 0x7400 && (h) < 0x7c00 ? 0x7e00 : (h))'",
         1, "is nan, should be"},
    };
    check_halves(rounded, cases, COUNT(cases));
}

Test(numbers, nothing_is_found_where_nothing_is_wrong)
{
    static const char *const sources[] = {"faulty/half.c", "faulty/gate.c",
                                          "faulty/typed.c"};
    static char output[OUTPUT];
    for (size_t i = 0; i < COUNT(sources); i++) {
        const char *file = build("good.so", sources[i], SHARED " -O1 -Wall -Wextra");
        const int code = command(output, "check '%s'", file);
        cr_expect_eq(code, 0, "%s: exit code %d\n%s", sources[i], code, output);
        cr_expect_null(strstr(output, ", 0 runs"), "%s", output);
    }
}
