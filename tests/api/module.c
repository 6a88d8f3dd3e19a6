/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer of the application itself, from the network to a saved engine and back.
 */
#include <strata/module.h>

#include "tests/engine/engine_session.h"

TestSuite(own_module, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)
#define N 35

/* y = factor*x + shift; without a state or a file. */
struct affine {
    double factor, shift;
};

static int run(const strata_run *r)
{
    const struct affine *p = r->params;
    const float *x = r->in[0].data;
    float *y = r->out[0].data;
    if (p->factor == 0)
        return STRATA_FAIL(r, STRATA_EUNSUPPORTED, "a factor of %g", p->factor);
    for (int64_t i = 0; i < r->in[0].count; i++)
        y[i] = (float)(p->factor * x[i] + p->shift);
    return STRATA_OK;
}

static const strata_attr attrs[] = {
    {.name = "factor", .type = STRATA_F64, .def = 1},
    {.name = "shift", .type = STRATA_F64, .offset = offsetof(struct affine, shift)}};
static const strata_row row = {.in = {STRATA_F32_NCHW}, .out = {STRATA_F32_NCHW}};
static const strata_impl impl = {
    .id = 1, .name = "own", .rows = {&row, 1, sizeof row}, .run = run};
static const strata_layer layer = {.struct_size = sizeof layer,
                                   .version = 1,
                                   .name = "Affine",
                                   .min_in = 1,
                                   .max_in = 1,
                                   .n_out = 1,
                                   .params_size = sizeof(struct affine),
                                   .attrs = STRATA_ARRAY(attrs),
                                   .impls = {&impl, 1, sizeof impl}};
static const strata_layer *const layers[] = {&layer};
static const strata_module module = {.struct_size = sizeof module,
                                     .abi_minor = STRATA_ABI_MINOR,
                                     .ns = "app",
                                     .version = "2.1",
                                     .layers = layers,
                                     .n_layers = 1};

static const char net[] = "[network]\nformat = 1\noutputs = y\n"
                          "[input x]\nshape = 1 x 5 x 7\n"
                          "[layer a]\ntype = Affine\nfactor = 2.5\nshift = -3\n"
                          "[layer y]\ntype = Activation\nkind = relu\n";

static void expect_run(const strata_engine *engine, strata_handle *handle)
{
    strata_context *context;
    strata_error err = {0};
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)(rand() % 1000) / 100 - 5;
    OK(strata_context_create(&context, engine, handle, &err));
    OK(strata_copy_in(context, 0, x, &err));
    OK(strata_context_run(context, &err));
    OK(strata_copy_out(context, 1, y, &err));
    for (int i = 0; i < N; i++) {
        const float wanted = (float)(2.5 * x[i] - 3);
        cr_expect_float_eq(y[i], wanted > 0 ? wanted : 0, 1e-6, "%g gives %g", x[i],
                           y[i]);
    }
    strata_context_destroy(context);
}

static int load_again(strata_engine **engine, strata_registry **registry,
                      strata_handle *handle, bool given, strata_error *err)
{
    int status = strata_registry_create(registry, NULL, err);
    if (status == STRATA_OK && given)
        status = strata_registry_add(*registry, "affine", &module, err);
    return status != STRATA_OK ? status
                               : strata_engine_load(engine, handle, *registry,
                                                    in_scratch("net.engine"), err);
}

Test(own_module, its_layers_run_and_are_saved)
{
    strata_error err = {0};
    strata_registry *registry;
    strata_engine *engine;
    struct session s;
    OK(session_open(&s, "host", NULL));
    OK(strata_registry_add(s.registry, "affine", &module, &err));
    OK(strata_network_load(&s.network, spill_text("net.ini", net), s.registry, NULL,
                           &err));
    OK(strata_engine_build(&s.engine, s.handle, s.network, &err));
    expect_run(s.engine, s.handle);
    OK(strata_engine_save(s.engine, in_scratch("net.engine"), &err));
    OK(load_again(&engine, &registry, s.handle, true, &err));
    expect_run(engine, s.handle);
    strata_engine_destroy(engine);
    strata_registry_destroy(registry);
    cr_expect_eq(load_again(&engine, &registry, s.handle, false, &err), STRATA_EMODULE);
    cr_expect_not_null(
        strstr(err.message, "layer 'a' needs module affine (app 2.1), which the "
                            "application that made the engine gave its registry itself"),
        "%s", err.message);
    cr_expect_not_null(strstr(err.message, "strata_registry_add"), "%s", err.message);
    strata_registry_destroy(registry);
    release(&s);
}

Test(own_module, a_run_that_fails_names_the_layer)
{
    static const char *const set[] = {"layer a.factor=0"};
    const strata_network_options options = {sizeof options, set, 1, NULL, 0};
    strata_error err = {0};
    strata_context *context;
    struct session s;
    OK(session_open(&s, "host", NULL));
    OK(strata_registry_add(s.registry, "affine", &module, &err));
    OK(strata_network_load(&s.network, spill_text("net.ini", net), s.registry, &options,
                           &err));
    OK(strata_engine_build(&s.engine, s.handle, s.network, &err));
    OK(strata_context_create(&context, s.engine, s.handle, &err));
    cr_expect_eq(strata_context_run(context, &err), STRATA_EUNSUPPORTED);
    cr_expect(strstr(err.message, "a factor of 0") && strstr(err.message, "'a'"), "%s",
              err.message);
    strata_context_destroy(context);
    release(&s);
}
