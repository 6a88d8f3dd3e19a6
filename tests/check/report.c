/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `strata check`, and its reports: text, TAP, JSON.
 */
#include "tests/faulty/command.h"

#include <jansson.h>

static char output[OUTPUT];

/* Wrong where there are more than 40 elements, and leaves a file open on loading. */
static const char *faulty(void)
{
    return build("faulty.so", "faulty/layer.c",
                 SHARED " -DRUN_END='if (n > 40) y[n - 1] += 1' "
                        "-DCONSTRUCTOR='open(\"/dev/null\", 0)' -O1 -w -lpthread");
}

static int count(const char *text, const char *words)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, words)); p += strlen(words))
        n++;
    return n;
}

static int runs_of(const char *file, const char *option);

TestSuite(check_report, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

/* Every line is TAP; how many tests failed. */
static int read_tap(char *text)
{
    int number = 0, failed = 0, planned = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n"));) {
        int at = 0;
        if (sscanf(line, "ok %d - ", &at) == 1 || sscanf(line, "not ok %d - ", &at) == 1)
            cr_expect_eq(at, ++number, "'%s' is line %d", line, number);
        else if (sscanf(line, "1..%d", &planned) != 1)
            cr_expect(line[0] == '#' || line[0] == '\0', "'%s' is not TAP", line);
        failed += strncmp(line, "not ok ", 7) == 0;
    }
    cr_expect_gt(number, 0);
    cr_expect_eq(planned, number);
    return failed;
}

Test(check_report, tap_has_a_numbered_line_a_test_and_a_plan)
{
    int code = command(output, "check '%s' --tap", faulty());
    cr_expect_eq(code, 1, "%d", code);
    cr_expect_eq(read_tap(output), 2, "load and values");
}

Test(check_report, a_layer_that_is_extended_must_be_found)
{
    const char *file = build("extends.so", "broken/extends.c", SHARED);
    int code = command(output, "check '%s' --test values", file);
    cr_expect_eq(code, 1, "%d\n%s", code, output);
    cr_expect(names(output, "refused", "org.example::Probe"), "%s", output);
    cr_expect(strstr(output, "--plugin-path"), "%s", output);
    code = command(output, "check '%s' --tap", file);
    cr_expect_eq(code, 1, "%d", code);
    cr_expect_gt(read_tap(output), 0);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    cr_assert_not_null(text, "no text '%s'", key);
    return text;
}

Test(check_report, json_has_all_that_the_text_has)
{
    static const char *const keys[] = {"rule",    "asked", "seen",  "phase",   "impl",
                                       "formats", "shape", "attrs", "variant", "again"};
    int failed = 0, tests = 0;
    const int code = command(output, "check '%s' --json --reproduce 5", faulty());
    cr_expect_eq(code, 1, "%d", code);
    for (char *rest = output, *line; (line = strsep(&rest, "\n")) && line[0]; tests++) {
        json_error_t why;
        json_t *test = json_loads(line, 0, &why);
        cr_assert_not_null(test, "%s: %s", why.text, line);
        const json_t *findings = json_object_get(test, "findings");
        const bool fails = strcmp(text_of(test, "verdict"), "failed") == 0;
        cr_expect_eq(json_array_size(findings) > 0, fails, "%s", line);
        for (size_t i = 0; i < json_array_size(findings); i++)
            for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
                text_of(json_array_get(findings, i), keys[k]);
        if (strcmp(text_of(test, "test"), "values") == 0 && fails) {
            const json_t *f = json_array_get(findings, 0);
            cr_expect_str_eq(text_of(f, "rule"), "value-wrong");
            cr_expect_str_eq(text_of(f, "phase"), "run");
            cr_expect(strstr(text_of(f, "again"), "--reproduce 5"));
            cr_expect(strstr(text_of(f, "again"), text_of(f, "shape")));
        }
        failed += fails;
        json_decref(test);
    }
    cr_expect_gt(tests, 5);
    cr_expect_eq(failed, 2);
}

/* Over 40 elements: no dim can be less without the product being 40 or less. */
Test(check_report, the_shape_of_a_finding_is_the_smallest)
{
    int64_t dims[4] = {0};
    command(output, "check '%s' --test values --impl c", faulty());
    const char *shape = strstr(output, "    shape   ");
    cr_assert_not_null(shape, "%s", output);
    const int rank =
        sscanf(shape + 12, "%ldx%ldx%ldx%ld", &dims[0], &dims[1], &dims[2], &dims[3]);
    cr_assert_eq(rank, 4, "%.60s", shape);
    const int64_t all = dims[0] * dims[1] * dims[2] * dims[3];
    cr_expect_gt(all, 40);
    for (int d = 0; d < 4; d++)
        cr_expect(dims[d] == 1 || all / dims[d] * (dims[d] - 1) <= 40, "%.60s", shape);
}

Test(check_report, a_seed_gives_the_same_report_again)
{
    static char first[OUTPUT];
    const char *file = faulty();
    command(first, "check '%s' --test values --reproduce 77 --json", file);
    command(output, "check '%s' --test values --reproduce 77 --json", file);
    const char *a = strstr(first, "\"seen\""), *b = strstr(output, "\"seen\"");
    cr_assert(a && b, "%s", first);
    cr_expect_str_eq(a, b);
    command(output, "check '%s' --test values --reproduce 78 --json", file);
    b = strstr(output, "\"seen\"");
    cr_assert(b);
    cr_expect_str_neq(a, b, "other numbers are drawn");
}

Test(check_report, in_process_finds_the_same)
{
    const char *file = faulty();
    int code = command(output, "check '%s' --in-process --test values", file);
    cr_expect_eq(code, 1, "%d\n%s", code, output);
    cr_expect(names(output, "value-wrong", "should be"), "%s", output);
    code = command(output, "check '%s' --in-process --test memory", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    file = build("good.so", "faulty/layer.c", SHARED " -O1 -w -lpthread");
    code = command(output, "check '%s' --in-process", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
}

Test(check_report, one_layer_can_be_asked_for)
{
    const char *file = faulty();
    int code = command(output, "check '%s' --layer Shifted --test shapes", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    cr_expect_eq(count(output, "shapes of org.faulty::Shifted@1"), 1, "%s", output);
    code =
        command(output, "check '%s' --layer org.faulty::Shifted@1 --test shapes", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    code = command(output, "check '%s' --layer Shiftless", file);
    cr_expect_eq(code, 2, "%d\n%s", code, output);
    cr_expect(strstr(output, "has no layer 'Shiftless'; it has org.faulty::Shifted"),
              "%s", output);
}

/* A layer that takes no shapes but those of one network. */
static const char *const own_text =
    "[network]\nformat = 1\noutputs = y\n[plugins]\nload = gate.so\n"
    "[input g]\nshape = 3 x 11\n[input x]\nshape = 3 x 11 x 4 x 5\n"
    "[layer y]\ntype = org.faulty::Gate\ninputs = x, g\n";

static const char *picky_gate(void)
{
    return build("gate.so", "faulty/gate.c",
                 SHARED " -O1 -w -DSHAPE='if (x->dims[1] != 11) return "
                        "STRATA_FAIL(n, STRATA_EINVAL, \"not 11 channels\")'");
}

Test(check_report, what_takes_nothing_is_untested_once)
{
    int code = command(output, "check '%s'", picky_gate());
    cr_expect_eq(code, 1, "%d\n%s", code, output);
    cr_expect_eq(count(output, "  untested: "), 1, "%s", output);
    cr_expect_not_null(strstr(output, "N x C x H x W and N x C are needed"), "%s",
                       output);
    cr_expect_null(strstr(output, "ok       values"), "%s", output);
}

/* An impl that refuses all there is, as no node is one for it, or the machine is not. */
static const char *refusing(const char *code)
{
    char flags[256];
    snprintf(flags, sizeof flags,
             SHARED " -O1 -w -lpthread "
                    "-DACCEPT='return STRATA_FAIL(n, %s, \"no such instructions\")'",
             code);
    return build("refusing.so", "faulty/layer.c", flags);
}

Test(check_report, what_this_machine_cannot_run_is_skipped)
{
    const char *only = "check '%s' --impl c --test values";
    int code = command(output, only, refusing("STRATA_EDEVICE"));
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    cr_expect_not_null(strstr(output, "this machine runs none of its impls: no such "
                                      "instructions"),
                       "%s", output);
    cr_expect_null(strstr(output, "ok       values"), "%s", output);
    code = command(output, only, refusing("STRATA_EUNSUPPORTED"));
    cr_expect_eq(code, 1, "%d\n%s", code, output);
    cr_expect_eq(count(output, "  untested: "), 1, "%s", output);
}

Test(check_report, several_shapes_are_tried_in_one_report)
{
    int code = command(output, "check '%s' --shape 1x11x2x2,1x11 --shape 3x11x4x5,3x11",
                       picky_gate());
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    cr_expect_eq(count(output, "values of org.faulty::Gate"), 1, "%s", output);
    const int both = runs_of(in_scratch("gate.so"),
                             "--shape 1x11x2x2,1x11 --shape 3x11x4x5,3x11"),
              one = runs_of(in_scratch("gate.so"), "--shape 1x11x2x2,1x11");
    cr_expect_eq(both, 2 * one, "%d, %d", both, one);
}

Test(check_report, the_network_beside_a_plugin_gives_cases)
{
    const char *file = picky_gate();
    FILE *f = fopen(in_scratch("gate.ini"), "w");
    cr_assert(f && fputs(own_text, f) >= 0 && fclose(f) == 0);
    int code = command(output, "check '%s'", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    cr_expect_not_null(strstr(output, "with 1 case of gate.ini"), "%s", output);
    f = fopen(in_scratch("gate.ini"), "a");
    cr_assert(f && fputs("nonsense = 1\n", f) >= 0 && fclose(f) == 0);
    code = command(output, "check '%s' --test values --shape 3x11x4x5,3x11", file);
    cr_expect_eq(code, 0, "%d\n%s", code, output);
    code = command(output, "check '%s' --test values", file);
    cr_expect_eq(code, 1, "%d\n%s", code, output);
}

/* A layer without attributes has no test of them that could pass. */
Test(check_report, no_runs_are_not_ok)
{
    const char *file = build("half.so", "faulty/half.c", SHARED " -O1");
    command(output, "check '%s' --test attributes", file);
    cr_expect_not_null(strstr(output, "skipped  attributes of org.faulty::Half@1 (the "
                                      "layer has none)"),
                       "%s", output);
    command(output, "check '%s' --tap --test attributes", file);
    cr_expect_not_null(strstr(output, "# SKIP the layer has none"), "%s", output);
}

static int runs_of(const char *file, const char *option)
{
    int runs = -1;
    command(output, "check '%s' --test values --impl c %s", file, option);
    const char *p = strstr(output, " on host, ");
    cr_assert(p && sscanf(p, " on host, %d runs", &runs) == 1, "%s", output);
    return runs;
}

Test(check_report, quick_tries_less_and_thorough_more)
{
    const char *file = build("good.so", "faulty/layer.c", SHARED " -O1 -w -lpthread");
    const int quick = runs_of(file, "--quick"), usual = runs_of(file, ""),
              thorough = runs_of(file, "--thorough");
    cr_expect(0 < quick && quick < usual && usual < thorough, "%d %d %d", quick, usual,
              thorough);
}

Test(check_report, what_cannot_be_asked_is_refused)
{
    static const char *const wrong[] = {"--test speed",     "--reproduce -1",
                                        "--reproduce many", "--time-limit 0",
                                        "--time-limit 1h",  "--nothing"};
    const char *file = faulty();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const int code = command(output, "check '%s' %s", file, wrong[i]);
        cr_expect_eq(code, 2, "%s: %d\n%s", wrong[i], code, output);
    }
    cr_expect_eq(command(output, "check"), 2);
}
