/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole models, imported and run, give what was published with them. A model that is not
 * there is skipped.
 *
 *   STRATA_ONNX_DATA=DIR     DIR/light holds the networks of ONNX's Python package
 *                            (onnx/backend/test/data), whose weights are one number each
 *   STRATA_MODELS=DIR        DIR/mnist_cntk holds a classifier of digits and its logits;
 *                            default ../shared/models beside the sources
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/network/import/planned.h"

#define PATH_BYTES 1024

static void path_of(char *out, const char *variable, const char *file)
{
    const char *folder = getenv(variable), *source = getenv("srcdir");
    if (folder)
        snprintf(out, PATH_BYTES, "%s/%s", folder, file);
    else
        snprintf(out, PATH_BYTES, "%s/../shared/models/%s", source ? source : ".", file);
    if (access(out, R_OK) != 0)
        cr_skip_test("%s: no such file here; set %s", out, variable);
}

static void open_model(struct imported *x, const struct onnx_model **m,
                       strata_registry **registry, const char *path)
{
    strata_error err = {0};
    cr_assert_eq(strata_registry_create(registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
    cr_assert_eq(onnx_open(m, path, NULL, &err), STRATA_OK, "%s", err.message);
    cr_assert_eq(imported_open(x, *m, *registry, NULL, &err), STRATA_OK, "%s",
                 err.message);
}

static void run(struct imported *x)
{
    strata_error err = {0};
    cr_assert_eq(strata_context_run(x->context, &err), STRATA_OK, "%s", err.message);
}

static void expect_near(const float *found, const float *wanted, int64_t n,
                        double relative, double absolute)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        const double bound = absolute + relative * fabs((double)wanted[i]);
        if (!(fabs((double)found[i] - (double)wanted[i]) <= bound) && wrong++ == 0)
            cr_expect(false, "element %lld is %g, should be %g", (long long)i,
                      (double)found[i], (double)wanted[i]);
    }
    cr_expect_eq(wrong, 0, "%lld of %lld elements", (long long)wrong, (long long)n);
}

static void expect_published(const char *name)
{
    char model[PATH_BYTES], output[PATH_BYTES], file[128];
    const struct onnx_model *m, *wanted;
    strata_registry *registry;
    struct imported x;
    strata_error err = {0};
    int64_t n;
    snprintf(file, sizeof file, "light/light_%s_output_0.pb", name);
    path_of(output, "STRATA_ONNX_DATA", file);
    snprintf(file, sizeof file, "light/light_%s.onnx", name);
    path_of(model, "STRATA_ONNX_DATA", file);
    cr_assert_eq(onnx_open_tensor(&wanted, output, NULL, &err), STRATA_OK, "%s",
                 err.message);
    open_model(&x, &m, &registry, model);
    float *in = imported_data(&x, 0, &n);
    for (int64_t i = 0; i < n; i++)
        in[i] = (float)((double)i / (double)n);
    run(&x);
    const float *found = imported_data(&x, 1, &n);
    const struct onnx_tensor *t = &wanted->graph.initializers[0];
    cr_assert_eq(t->count, n);
    expect_near(found, t->data, n, strcmp(name, "densenet121") ? 1e-3 : 2e-3, 1e-7);
    imported_free(&x);
    onnx_close(m);
    onnx_close(wanted);
    strata_registry_destroy(registry);
}

#define LIGHT(name)                                                                      \
    Test(models, light_##name)                                                           \
    {                                                                                    \
        expect_published(#name);                                                         \
    }
LIGHT(bvlc_alexnet)
LIGHT(densenet121)
LIGHT(inception_v1)
LIGHT(inception_v2)
LIGHT(resnet50)
LIGHT(shufflenet)
LIGHT(squeezenet)
LIGHT(vgg19)
LIGHT(zfnet512)

static size_t read_file(const char *path, void *out, size_t bytes)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(out, 1, bytes, f) : 0;
    if (f)
        fclose(f);
    return n;
}

Test(models, mnist_cntk)
{
    enum { IMAGES = 100, PIXELS = 28 * 28, DIGITS = 10 };
    static unsigned char images[IMAGES * PIXELS];
    static float logits[IMAGES * DIGITS];
    char path[PATH_BYTES];
    const struct onnx_model *m;
    strata_registry *registry;
    struct imported x;
    int64_t n;
    path_of(path, "STRATA_MODELS", "mnist_cntk/images_first1000x1x28x28.u8");
    cr_assert_eq(read_file(path, images, sizeof images), sizeof images);
    path_of(path, "STRATA_MODELS", "mnist_cntk/expected_logits_first1000x10.f32");
    cr_assert_eq(read_file(path, logits, sizeof logits), sizeof logits);
    path_of(path, "STRATA_MODELS", "mnist_cntk/mnist.onnx");
    open_model(&x, &m, &registry, path);
    for (int i = 0; i < IMAGES; i++) {
        float *in = imported_data(&x, 0, &n);
        cr_assert_eq(n, PIXELS);
        for (int k = 0; k < PIXELS; k++)
            in[k] = images[i * PIXELS + k];
        run(&x);
        const float *found = imported_data(&x, 1, &n);
        cr_assert_eq(n, DIGITS);
        expect_near(found, &logits[i * DIGITS], n, 1e-4, 1e-1);
    }
    imported_free(&x);
    onnx_close(m);
    strata_registry_destroy(registry);
}
