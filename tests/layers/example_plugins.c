/* SPDX-License-Identifier: Apache-2.0
 *
 * The plugins of examples/plugins, as their own Makefiles build them, in networks:
 * against their formula, or against the layer's plain host impl.
 */
#include "tests/cuda/device.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

TestSuite(example_plugins, .timeout = 600);

enum { MAX_SETS = 6, TEXT = 512 };

/* A network's output must be `formula` of its input, or what `plain` (an impl) gives. */
struct example {
    const char *ini;   /* below the folder of built examples */
    const char *shape; /* of input x */
    const char *set;   /* one more override, or NULL */
    double (*formula)(double x);
    const char *plain;
    const char *module; /* that is needed beside the network's own, or NULL */
};

static double leaky(double x)
{
    return x > 0 ? x : 0.5 * x;
}

static double bell(double x)
{
    return exp(-x * x / (2 * 0.75 * 0.75));
}

#define LEAKY "leaky_relu/leaky_relu.ini"
#define GAUSSIAN "gaussian_cuda/gaussian.ini"
#define DEPTHWISE "depthwise/depthwise.ini"
#define SCAFFOLD "scaffold/scaffold.ini"
#define CUDA_SCAFFOLD "scaffold/scaffold_cuda.so"
#define CUBLAS "fully_connected_cublas/fully_connected.ini"

static const struct example on_host[] = {
    {LEAKY, "1 x 1", NULL, leaky, NULL, NULL},
    {LEAKY, "3 x 7 x 11 x 13", NULL, leaky, NULL, NULL},
    {DEPTHWISE, "2 x 24 x 17 x 19", NULL, NULL, "c", NULL},
    {DEPTHWISE, "1 x 24 x 1 x 1", NULL, NULL, "c", NULL},
    {DEPTHWISE, "1 x 24 x 9 x 12", "layer y.stride=1x3", NULL, "c", NULL},
    {DEPTHWISE, "1 x 24 x 9 x 12", "layer y.pad=3, 0, 1, 2", NULL, "c", NULL},
    {DEPTHWISE, "3 x 24 x 9 x 12", "layer y.bias=w", NULL, "c", NULL},
};

static const struct example on_cuda[] = {
    {GAUSSIAN, "1 x 1", NULL, bell, NULL, NULL},
    {GAUSSIAN, "2 x 5 x 7 x 9", NULL, bell, NULL, NULL},
    {GAUSSIAN, "3 x 16 x 5 x 5", NULL, bell, NULL, NULL},
    {GAUSSIAN, "1 x 1 x 33 x 65", NULL, bell, NULL, NULL},
    {GAUSSIAN, "2 x 3 x 4 x 5 x 6", NULL, bell, NULL, NULL},
    {GAUSSIAN, "1 x 9 x 300 x 301", NULL, bell, NULL, NULL},
    {SCAFFOLD, "1 x 1", NULL, NULL, "c", CUDA_SCAFFOLD},
    {SCAFFOLD, "2 x 5 x 7 x 9", NULL, NULL, "c", CUDA_SCAFFOLD},
    {SCAFFOLD, "2 x 5 x 7 x 9", "layer y.shift=none", NULL, "c", CUDA_SCAFFOLD},
    {SCAFFOLD, "3 x 16 x 5 x 5", NULL, NULL, "c", CUDA_SCAFFOLD},
    {SCAFFOLD, "1 x 33 x 65", NULL, NULL, "c", CUDA_SCAFFOLD},
    {SCAFFOLD, "2 x 3 x 4 x 5 x 6", NULL, NULL, "c", CUDA_SCAFFOLD},
    {CUBLAS, "3 x 5 x 4 x 7", NULL, NULL, "c", NULL},
    {CUBLAS, "1 x 1000", NULL, NULL, "c", NULL},
    {CUBLAS, "65 x 33 x 5 x 3", NULL, NULL, "c", NULL},
    {CUBLAS, "17 x 300", "layer y.transposed=yes", NULL, "c", NULL},
    {CUBLAS, "17 x 300", "layer y.bias=none", NULL, "c", NULL},
};

static const struct {
    const char *precision, *formats;
    double bound; /* relative to the largest value */
} variants[] = {
    {"fp32", "fp32:nchw", 4e-6},
    {"fp16", "fp16:nchw", 2e-3},
    {"fp16", "fp16:nc/2hw2", 2e-3},
    {"fp16", "fp16:nhwc8", 2e-3},
};

/* ---- one run ---------------------------------------------------------------------- */

struct tensors {
    float *x, *y;
    size_t n_x, n_y; /* elements */
};

static uint64_t state;

static float draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(state >> 32) / 1073741824.0f; /* [-2, 2) */
}

static const char *folder(void)
{
    static char path[TEXT];
    const char *given = getenv("STRATA_EXAMPLES"), *build = getenv("builddir");
    if (given)
        return given;
    snprintf(path, sizeof path, "%s/examples/plugins/built", build ? build : ".");
    return path;
}

/* Input x as it is, or drawn where there is none yet. */
static void run_context(struct tensors *t, const strata_engine *engine, strata_handle *h)
{
    static strata_error err;
    strata_context *context;
    strata_binding b = {.struct_size = sizeof b};
    cr_assert(!strata_context_create(&context, engine, h, &err), "%s", err.message);
    cr_assert(!strata_engine_binding(engine, 0, &b, &err), "%s", err.message);
    t->n_x = (size_t)b.bytes / sizeof(float);
    if (!t->x) {
        t->x = malloc((size_t)b.bytes);
        for (size_t i = 0; t->x && i < t->n_x; i++)
            t->x[i] = draw();
    }
    cr_assert(!strata_engine_binding(engine, 1, &b, &err), "%s", err.message);
    t->n_y = (size_t)b.bytes / sizeof(float);
    t->y = malloc((size_t)b.bytes);
    cr_assert(t->x && t->y);
    memset(t->y, 0xff, (size_t)b.bytes);
    cr_assert(!strata_copy_in(context, 0, t->x, &err), "%s", err.message);
    /* Twice, so that nothing may hang on fresh memory. */
    for (int i = 0; i < 2; i++)
        cr_assert(!strata_context_run(context, &err), "%s", err.message);
    cr_assert(!strata_copy_out(context, 1, t->y, &err), "%s", err.message);
    strata_context_destroy(context);
}

static void run_network(struct tensors *t, const struct example *e, const char *device,
                        const char *const *set, size_t n_set)
{
    static strata_error err;
    strata_handle *handle;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    char path[TEXT + 128];
    const bool beside = e->module && strcmp(device, "host") != 0;
    const strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = n_set};
    const char *const files[] = {path};
    const strata_registry_options modules = {
        .struct_size = sizeof modules, .files = files, .n_files = beside};
    if (beside)
        snprintf(path, sizeof path, "%s/%s", folder(), e->module);
    cr_assert(!strata_create(&handle, device, &err), "%s", err.message);
    cr_assert(!strata_registry_create(&registry, &modules, &err), "%s", err.message);
    snprintf(path, sizeof path, "%s/%s", folder(), e->ini);
    cr_assert(!strata_network_load(&network, path, registry, &options, &err), "%s",
              err.message);
    cr_assert(!strata_engine_build(&engine, handle, network, &err), "%s: %s", e->ini,
              err.message);
    run_context(t, engine, handle);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(handle);
}

/* ---- comparison ------------------------------------------------------------------- */

static void expect_near(const struct tensors *t, const double *want, double bound,
                        const struct example *e, const char *formats)
{
    double largest = 1, worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < t->n_y; i++)
        largest = fmax(largest, fabs(want[i]));
    for (size_t i = 0; i < t->n_y; i++) {
        const double error = fabs((double)t->y[i] - want[i]);
        if (!(error <= worst)) { /* NaN too */
            worst = error;
            at = i;
            if (isnan(error))
                break;
        }
    }
    cr_expect(worst <= bound * largest, "%s, x %s, %s, %s: y[%zu] is %.9g, not %.9g",
              e->ini, e->shape, e->set ? e->set : "as written", formats, at,
              (double)t->y[at], want[at]);
}

static void check(const struct example *e, const char *device, const char *precision,
                  const char *formats, double bound)
{
    char shape[TEXT], plain[64], text[2][64];
    const char *set[MAX_SETS];
    struct tensors got = {0}, other = {0};
    size_t n = 0;
    snprintf(shape, sizeof shape, "input x.shape=%s", e->shape);
    set[n++] = shape;
    if (e->set)
        set[n++] = e->set;
    if (e->plain) {
        snprintf(plain, sizeof plain, "layer y.impl=%s", e->plain);
        set[n++] = plain;
        run_network(&other, e, "host", set, n--);
        got.x = other.x;
    }
    snprintf(text[0], sizeof text[0], "build.precision=%s", precision);
    snprintf(text[1], sizeof text[1], "build.formats=%s", formats ? formats : "");
    set[n++] = text[0];
    if (formats)
        set[n++] = text[1];
    run_network(&got, e, device, set, n);
    double *want = malloc(got.n_y * sizeof *want);
    cr_assert(want && (!e->plain || other.n_y == got.n_y));
    for (size_t i = 0; i < got.n_y; i++)
        want[i] = e->plain ? (double)other.y[i] : e->formula((double)got.x[i]);
    expect_near(&got, want, bound, e, formats ? formats : precision);
    free(want);
    free(got.x);
    free(got.y);
    free(other.y);
}

static void need_examples(const char *ini)
{
    char path[TEXT + 128];
    snprintf(path, sizeof path, "%s/%s", folder(), ini);
    if (access(path, R_OK) != 0)
        cr_skip_test("%s was not built", path);
    state = (uint64_t)time(NULL);
    printf("# seed %llu\n", (unsigned long long)state);
}

Test(example_plugins, host_examples_are_right)
{
    need_examples(LEAKY);
    for (size_t i = 0; i < ARRAY_LENGTH(on_host); i++)
        check(&on_host[i], "host", "fp32", NULL, 4e-6);
}

Test(example_plugins, cuda_examples_are_right_in_every_format)
{
    strata_handle *h = need_cuda();
    need_examples(GAUSSIAN);
    for (size_t i = 0; i < ARRAY_LENGTH(on_cuda); i++) {
        /* cuBLAS: fp32:nchw alone, and sums. */
        const bool sums = strcmp(on_cuda[i].ini, CUBLAS) == 0;
        for (size_t v = 0; v < (sums ? 1 : ARRAY_LENGTH(variants)); v++)
            check(&on_cuda[i], "cuda:0", variants[v].precision, variants[v].formats,
                  sums ? 2e-5 : variants[v].bound);
    }
    strata_destroy(h);
}
