/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command tells of an engine whose plan was timed in place: as one is that a
 * device saved, but with times that are given here.
 */
#include <strata/strata.h>

#include "engine/engine.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>

static const char net[] =
    "[network]\nformat = 1\noutputs = y\n"
    "[input x]\nshape = 2 x 3 x 8 x 8\n"
    "[layer a]\ntype = Pooling\nkind = max\nkernel = 2x2\nstride = 2\n"
    "[layer y]\ntype = Softmax\naxis = 1\n"
    "[build]\ncosts = analytic\n";

enum { US = 1000 * PLAN_UNIT_PER_NS };

static char file[300];

/* Steps that take 11, 12, ... us; prices are the model's. */
static void save_engine(void)
{
    strata_error err = {0};
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *e;
    scratch_make();
    const char *ini = spill_text("net.ini", net);
    cr_assert_eq(strata_registry_create(&registry, NULL, &err), STRATA_OK);
    cr_assert_eq(strata_create(&handle, "host", &err), STRATA_OK);
    cr_assert_eq(strata_network_load(&network, ini, registry, NULL, &err), STRATA_OK,
                 "%s", err.message);
    snprintf(file, sizeof file, "%s.engine", ini);
    cr_assert_eq(strata_engine_build(&e, handle, network, &err), STRATA_OK, "%s",
                 err.message);
    cr_expect_eq(e->execution->in_place, 0, "a model's costs are timed");
    for (size_t i = 0; i < e->execution->n_steps; i++)
        e->execution->in_place += e->execution->steps[i].in_place = (11 + (int)i) * US;
    cr_assert_eq(e->execution->n_steps, 2);
    cr_assert_eq(strata_engine_save(e, file, &err), STRATA_OK, "%s", err.message);
    strata_step step = {.struct_size = sizeof step};
    cr_assert_eq(strata_engine_step(e, 1, &step, &err), STRATA_OK);
    cr_expect_float_eq(step.predicted_us, 12, 1e-9);
    strata_engine_destroy(e);
    strata_network_destroy(network);
    strata_destroy(handle);
    strata_registry_destroy(registry);
}

static void remove_engine(void)
{
    remove(file);
    scratch_remove();
}

TestSuite(told_in_place, .init = save_engine, .fini = remove_engine, .timeout = 600);

/* What a command of the engine prints. */
static void run(char *out, size_t size, const char *command, const char *options)
{
    char line[800];
    const char *build = getenv("builddir");
    snprintf(line, sizeof line, "'%s/strata' %s '%s' %s", build ? build : ".", command,
             file, options);
    FILE *f = popen(line, "r");
    cr_assert_not_null(f);
    out[fread(out, 1, size - 1, f)] = '\0';
    cr_assert_eq(pclose(f), 0, "%s: %s", line, out);
}

Test(told_in_place, both_stand_side_by_side)
{
    static char text[20000];
    run(text, sizeof text, "explain", "");
    cr_expect(strstr(text, "price  in place"), "%s", text);
    cr_expect(strstr(text, " 11.0 ") && strstr(text, " 12.0 "), "%s", text);
    cr_expect(strstr(text, "predicted 23.0 us, timed in place; the prices add up to "),
              "%s", text);
}

Test(told_in_place, a_report_has_them)
{
    static char text[200000];
    run(text, sizeof text, "inspect", "");
    cr_expect(strstr(text, "predicted 23.0 us"), "%s", text);
    run(text, sizeof text, "explain", "-o json");
    cr_expect(strstr(text, "\"in_place_us\": 23.0"), "%.2000s", text);
    const char *list = strstr(text, "\"in_place\": [");
    cr_assert_not_null(list);
    cr_expect(strstr(list, "\"price_us\""));
}
