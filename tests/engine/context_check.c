/* SPDX-License-Identifier: Apache-2.0
 *
 * STRATA_CHECK=1 names the node of a network that breaks the contract, and what it did,
 * and changes nothing where none does. The faulty layers are tests/faulty/layer.c with a
 * fault put in by -D, and those of tests/faulty/cuda.cu on a GPU.
 */
#include "tests/broken/build.h"

#include <limits.h>
#include <math.h>

#include "engine/context/context.h"
#include "tests/cuda/device.h"

/* ---- networks ---------------------------------------------------------------------- */

struct net {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    strata_error err;
};

static void close_net(struct net *n)
{
    strata_context_destroy(n->context);
    strata_engine_destroy(n->engine);
    strata_network_destroy(n->network);
    strata_destroy(n->handle);
    strata_registry_destroy(n->registry);
}

/* Up to its context, with or without the check. By the model's costs: measuring would run
 * what is faulty, and might give another plan each time. */
static void open_net(struct net *n, const char *ini, const char *module,
                     const char *device, bool check)
{
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .files = &module,
                                             .n_files = module != NULL,
                                             .search_path = getenv("STRATA_PLUGIN_PATH"),
                                             .allow_untrusted = 1,
                                             .no_default_path = 1};
    static const char *const set[] = {"build.costs=analytic"};
    const strata_network_options build = {
        .struct_size = sizeof build, .set = set, .n_set = 1};
    const char *path = spill("net.ini", ini, strlen(ini));
    memset(n, 0, sizeof *n);
    cr_assert_eq(setenv("STRATA_CHECK", check ? "1" : "0", 1), 0);
    int status = strata_registry_create(&n->registry, &options, &n->err);
    if (status == STRATA_OK)
        status = strata_create(&n->handle, device, &n->err);
    if (status == STRATA_OK)
        status = strata_network_load(&n->network, path, n->registry, &build, &n->err);
    if (status == STRATA_OK)
        status = strata_engine_build(&n->engine, n->handle, n->network, &n->err);
    if (status == STRATA_OK)
        status = strata_context_create(&n->context, n->engine, n->handle, &n->err);
    cr_assert_eq(status, STRATA_OK, "%s", n->err.message);
    cr_assert_eq(n->context->check != NULL, check);
}

/* The first input gets numbers between -1 and 1. */
static void fill_input(struct net *n)
{
    strata_binding b = {.struct_size = sizeof b};
    cr_assert_eq(strata_engine_binding(n->engine, 0, &b, &n->err), STRATA_OK);
    float *x = malloc((size_t)b.bytes);
    for (int64_t i = 0; i < b.bytes / 4; i++)
        x[i] = (float)((i * 37 + 11) % 257) / 128 - 1;
    cr_assert_eq(strata_copy_in(n->context, 0, x, &n->err), STRATA_OK, "%s",
                 n->err.message);
    free(x);
}

/* What stands in the message beside `words`. */
static void expect_named(const struct net *n, int status, const char *what,
                         const char *impl, const char *module, const char *words)
{
    char place[PATH_MAX + 64];
    snprintf(place, sizeof place, "layer 'faulty', impl %s of %s: STRATA_CHECK: ", impl,
             module);
    cr_expect_eq(status, STRATA_EINTERNAL, "%s: status %d", what, status);
    cr_expect(strstr(n->err.message, place) && strstr(n->err.message, words),
              "%s: want '%s%s', got '%s'", what, place, words, n->err.message);
}

/* ---- on the host ------------------------------------------------------------------- */

static const struct fault {
    const char *what, *define, *impl, *words;
} faults[] = {
    {"writes one element too many", "-DRUN_END='y[n] = 0'", "c",
     "wrote byte 1 past the 420 bytes of output 0"},
    {"writes one element before", "-DRUN_END='y[-1] = 0'", "c",
     "wrote byte 1 before the 420 bytes of output 0"},
    {"writes 40 bytes behind", "-DRUN_END='((char *)y)[n * 4 + 39] = 0'", "c",
     "wrote byte 40 past the 420 bytes of output 0"},
    {"writes before its input", "-DRUN_END='((float *)x)[-1] = 0'", "c",
     "wrote byte 1 before the 420 bytes of input 0"},
    {"writes past its workspace", "-DRUN_END='work[n] = 0'", "c",
     "wrote byte 1 past the 420 bytes of workspace"},
    {"modifies its input", "-DRUN_END='((float *)x)[7] = 5'", "c",
     "changed input 0, from byte 28"},
    {"leaves the last element", "-DWRITTEN='n - 1'", "c",
     "did not write output 0 at (0, 2, 4, 6)"},
    {"writes nothing", "-DRUN_BEGIN='return STRATA_OK'", "c",
     "did not write output 0 at (0, 0, 0, 0)"},
    {"reads stale workspace", "-DRUN_BEGIN='float old = work[3]' -DRUN_END='y[3] += old'",
     "c", "output 0 at (0, 0, 0, 3) depends on what its outputs, its workspace"},
    {"adds to its output", "-DRUN_BEGIN='float old = y[2]' -DRUN_END='y[2] += old'", "c",
     "output 0 at (0, 0, 0, 2) depends on what its outputs, its workspace"},
    {"leaves pad lanes", "-DPADS", "blocked",
     "left a pad lane of output 0 at (0, 3, 0, 0)"},
};

/* Something on either side of the faulty layer. */
static const char *faulty_net(char text[1024], const char *type, const char *impl,
                              const char *rest)
{
    snprintf(text, 1024,
             "[network]\nformat = 1\noutputs = tail\n[input x]\nshape = 1 x 3 x 5 x 7\n"
             "[layer head]\ntype = Activation\nkind = tanh\n"
             "[layer faulty]\ntype = org.faulty::%s\nimpl = %s\n"
             "[layer tail]\ntype = Activation\nkind = sigmoid\n%s",
             type, impl, rest);
    return text;
}

static void check_fault(const struct fault *f)
{
    struct net n;
    char ini[1024], name[32];
    snprintf(name, sizeof name, "faulty-%td.so", f - faults); /* modules stay loaded */
    const char *module =
        build(name, "faulty/layer.c", SHARED " %s -O1 -w -lpthread", f->define);
    open_net(&n, faulty_net(ini, "Shifted", f->impl, ""), module, "host", true);
    fill_input(&n);
    for (int run = 0; run < 2; run++) { /* a second run tells it again */
        strata_error empty = {0};
        n.err = empty;
        expect_named(&n, strata_context_run(n.context, &n.err), f->what, f->impl, module,
                     f->words);
    }
    close_net(&n);
}

TestSuite(context_check, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

Test(context_check, the_node_that_breaks_the_contract_is_named)
{
    for (size_t i = 0; i < ARRAY_LENGTH(faults); i++)
        check_fault(&faults[i]);
}

/* Slices made in place, a residual sum, pads, in-place layers, several readers. */
static const char joined[] =
    "[network]\nformat = 1\noutputs = sum, mean\n[input x]\nshape = 2 x 3 x 8 x 8\n"
    "[weights w]\nrandom = 1\n"
    "[layer stem]\ntype = Convolution\nfilters = 9\nkernel = 3x3\npad = 1\n"
    "weights = w:stem\n"
    "[layer left]\ntype = Convolution\ninputs = stem\nfilters = 16\nkernel = 1x1\n"
    "weights = w:left\n"
    "[layer right]\ntype = Convolution\ninputs = stem\nfilters = 16\nkernel = 3x3\n"
    "pad = 1\nweights = w:right\n"
    "[layer cat]\ntype = Concatenation\ninputs = left, right\naxis = 1\n"
    "[layer mix]\ntype = Convolution\nfilters = 9\nkernel = 1x1\nweights = w:mix\n"
    "[layer sum]\ntype = ElementWise\ninputs = mix, stem\nop = sum\n"
    "[layer act]\ntype = Activation\nkind = relu\n"
    "[layer mean]\ntype = Pooling\nkind = average\nkernel = 8x8\n";

/* The outputs, one behind the other; how many bytes. */
static size_t run_net(const char *ini, const char *device, bool check, char *out,
                      size_t size)
{
    struct net n;
    strata_binding b = {.struct_size = sizeof b};
    size_t used = 0;
    open_net(&n, ini, NULL, device, check);
    fill_input(&n);
    for (int run = 0; run < 3; run++)
        cr_assert_eq(strata_context_run(n.context, &n.err), STRATA_OK, "%s",
                     n.err.message);
    for (int i = 1; strata_engine_binding(n.engine, i, &b, NULL) == STRATA_OK; i++) {
        cr_assert_leq(used + (size_t)b.bytes, size);
        cr_assert_eq(strata_copy_out(n.context, i, out + used, &n.err), STRATA_OK);
        used += (size_t)b.bytes;
    }
    close_net(&n);
    return used;
}

static void compare_runs(const char *device)
{
    static const char *const builds[] = {
        "",
        "[build]\nprecision = fp16\nformats = fp16:nhwc8\n",
        "[build]\nprecision = fp16\nformats = fp16:nc/2hw2\n",
    };
    static char plain[1 << 16], checked[1 << 16];
    char ini[2048];
    for (size_t i = 0; i < ARRAY_LENGTH(builds); i++) {
        snprintf(ini, sizeof ini, "%s%s", joined, builds[i]);
        const size_t bytes = run_net(ini, device, false, plain, sizeof plain);
        cr_assert_gt(bytes, 0);
        cr_expect_eq(run_net(ini, device, true, checked, sizeof checked), bytes);
        cr_expect_eq(memcmp(plain, checked, bytes), 0, "'%s' on %s: other results",
                     builds[i], device);
    }
}

Test(context_check, a_network_that_keeps_the_contract_gives_the_same_results)
{
    compare_runs("host");
}

Test(context_check, memory_that_the_application_binds_is_written_like_any_other)
{
    struct net n;
    char ini[1024];
    const char *module =
        build("faulty.so", "faulty/layer.c",
              SHARED " -DRUN_END='((float *)x)[0] += 1' -O1 -w -lpthread");
    float *x = aligned_alloc(256, 512), *y = aligned_alloc(256, 512);
    for (int i = 0; i < 128; i++)
        x[i] = y[i] = 1;
    open_net(&n, faulty_net(ini, "Shifted", "c", ""), module, "host", true);
    cr_assert_eq(strata_context_bind(n.context, 0, x, &n.err), STRATA_OK);
    cr_assert_eq(strata_context_bind(n.context, 1, y, &n.err), STRATA_OK);
    expect_named(&n, strata_context_run(n.context, &n.err), "bound", "c", module,
                 "changed input 0");
    close_net(&n);
    free(x);
    free(y);
}

static char warned[1024];

static void keep_warning(void *user, int level, const char *text)
{
    (void)user;
    if (level == STRATA_LOG_WARNING && strstr(text, "NaN"))
        snprintf(warned, sizeof warned, "%s", text);
}

/* What a slice leaves out is gone. */
Test(context_check, a_layer_that_loses_a_nan_is_named)
{
    static const char ini[] =
        "[network]\nformat = 1\noutputs = tail\n[input x]\nshape = 1 x 1 x 4 x 4\n"
        "[layer head]\ntype = Scale\nscale = 2\n"
        "[layer part]\ntype = Slice\naxes = 2, 3\nbegin = 0, 0\n"
        "end = 4, 4\nstep = 2, 2\nimpl = c\n"
        "[layer tail]\ntype = Activation\nkind = sigmoid\n";
    struct net n;
    float x[16] = {0};
    open_net(&n, ini, NULL, "host", true);
    strata_set_logger(keep_warning, NULL, STRATA_LOG_WARNING);
    for (int lost = 0; lost < 2; lost++) {
        warned[0] = '\0';
        x[6] = lost ? NAN : 1;
        cr_assert_eq(strata_copy_in(n.context, 0, x, &n.err), STRATA_OK);
        cr_assert_eq(strata_context_run(n.context, &n.err), STRATA_OK, "%s",
                     n.err.message);
        cr_expect(!lost == !warned[0], "%s", warned);
    }
    cr_expect(strstr(warned, "net.ini:9: layer 'part', impl c of "), "%s", warned);
    cr_expect(strstr(warned, "STRATA_CHECK: input 0 is NaN at (0, 0, 1, 2), no output"),
              "%s", warned);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    close_net(&n);
}

/* ---- on a GPU ---------------------------------------------------------------------- */

static const struct fault cuda_faults[] = {
    {"OneTooMany", NULL, "cuda", "past the 420 bytes of output 0"},
    {"OneTooFew", NULL, "cuda", "did not write output 0 at (0, 2, 4, 6)"},
    {"ModifiesInput", NULL, "cuda", "changed input 0, from byte 0"},
    {"WorkspaceOverrun", NULL, "cuda", "past the 420 bytes of workspace"},
    {"PadDirty", NULL, "cuda", "left a pad lane of output 0 at (0, 3, 0, 0)"},
};

TestSuite(cuda_context_check, .init = scratch_make, .fini = scratch_remove,
          .timeout = 600);

Test(cuda_context_check, the_node_that_breaks_the_contract_is_named)
{
    char module[PATH_MAX], ini[1024];
    struct net n;
    strata_destroy(need_cuda());
    snprintf(module, sizeof module, "%s/cuda_faulty.so",
             env_or("STRATA_TEST_MODULES", "."));
    for (size_t i = 0; i < ARRAY_LENGTH(cuda_faults); i++) {
        const struct fault *f = &cuda_faults[i];
        open_net(&n, faulty_net(ini, f->what, "cuda", "[build]\nprecision = any\n"),
                 module, "cuda:0", true);
        fill_input(&n);
        expect_named(&n, strata_context_run(n.context, &n.err), f->what, f->impl, module,
                     f->words);
        close_net(&n);
    }
}

Test(cuda_context_check, work_that_fails_later_is_blamed_on_its_node)
{
    char module[PATH_MAX], ini[1024];
    struct net n;
    strata_destroy(need_cuda());
    snprintf(module, sizeof module, "%s/cuda_faulty.so",
             env_or("STRATA_TEST_MODULES", "."));
    open_net(&n, faulty_net(ini, "WildPointer", "cuda", ""), module, "cuda:0", true);
    fill_input(&n);
    cr_expect_eq(strata_context_run(n.context, &n.err), STRATA_EDEVICELOST);
    cr_expect(strstr(n.err.message, "layer 'faulty', impl cuda"), "%s", n.err.message);
    close_net(&n);
}

Test(cuda_context_check, a_network_that_keeps_the_contract_gives_the_same_results)
{
    strata_destroy(need_cuda());
    compare_runs("cuda:0");
}
