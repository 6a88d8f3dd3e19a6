/* SPDX-License-Identifier: Apache-2.0
 *
 * Random networks with random pins of formats against the same network with none: every
 * layer an output there, so that nothing is fused, shared in place or in another format.
 * STRATA_TEST_DEVICE names the device of the former; the plain twins run on the host.
 */
#include <strata/strata.h>

#include <math.h>

#include "core/handle.h"
#include "tests/engine/network_draw.h"
#include "tests/support/scratch.h"

#define FP32_TOLERANCE 2e-5
#define FP16_TOLERANCE 3e-2 /* of the largest value, after up to a dozen roundings */

TestSuite(random_networks, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

struct session {
    strata_registry *registry;
    strata_handle *host, *handle;
    strata_error err;
};

struct built {
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    void *data[2 * MAX_NODES]; /* the caller's memory of the bindings */
};

static void drop(struct built *b)
{
    strata_binding info = {.struct_size = sizeof info};
    strata_context_destroy(b->context);
    for (int i = 0; b->engine && i < strata_engine_bindings(b->engine); i++) {
        strata_engine_binding(b->engine, i, &info, NULL);
        allocator_put(&b->handle->allocator, b->data[i], (size_t)info.bytes);
    }
    strata_engine_destroy(b->engine);
    strata_network_destroy(b->network);
}

static bool build(struct built *b, struct session *t, strata_handle *handle)
{
    memset(b, 0, sizeof *b);
    b->handle = handle;
    return strata_network_load(&b->network, in_scratch("net.ini"), t->registry, NULL,
                               &t->err) == STRATA_OK &&
           strata_engine_build(&b->engine, handle, b->network, &t->err) == STRATA_OK &&
           strata_context_create(&b->context, b->engine, handle, &t->err) == STRATA_OK;
}

static strata_desc linear_desc(const strata_desc *d)
{
    strata_desc out;
    cr_assert_eq(strata_desc_format(&out, "fp32:nchw", d->dims, d->rank, NULL),
                 STRATA_OK);
    return out;
}

/* A binding's values as a fresh FP32 array in linear order. */
static float *values_of(struct built *b, int index, int64_t *count)
{
    strata_binding info = {.struct_size = sizeof info};
    cr_assert_eq(strata_engine_binding(b->engine, index, &info, NULL), STRATA_OK);
    strata_desc d = linear_desc(&info.desc);
    *count = strata_desc_count(&d);
    float *out = malloc((size_t)*count * sizeof *out);
    void *data = malloc((size_t)info.bytes);
    cr_assert_eq(strata_copy_out(b->context, index, data, NULL), STRATA_OK);
    cr_assert_eq(strata_reformat(&d, out, &info.desc, data, NULL), STRATA_OK);
    free(data);
    return out;
}

static void set_input(struct built *b, int index, unsigned seed)
{
    strata_binding info = {.struct_size = sizeof info};
    cr_assert_eq(strata_engine_binding(b->engine, index, &info, NULL), STRATA_OK);
    strata_desc d = linear_desc(&info.desc);
    int64_t count = strata_desc_count(&d);
    struct sketch noise = {.state = seed + (unsigned)index};
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)sketch_roll(&noise, 2001) / 1000 - 1;
    void *data = calloc(1, (size_t)info.bytes);
    cr_assert_eq(strata_reformat(&info.desc, data, &d, values, NULL), STRATA_OK);
    cr_assert_eq(strata_copy_in(b->context, index, data, NULL), STRATA_OK);
    free(data);
    free(values);
}

/* Memory of the caller's for every other binding, full of NaN bits. */
static void rebind(struct built *b, unsigned seed)
{
    strata_binding info = {.struct_size = sizeof info};
    for (int i = 0; i < strata_engine_bindings(b->engine); i++) {
        strata_engine_binding(b->engine, i, &info, NULL);
        if ((seed + (unsigned)i) % 2)
            continue;
        const struct device_ops *ops = b->handle->device->ops;
        const size_t bytes = (size_t)info.bytes;
        b->data[i] = allocator_get(&b->handle->allocator, bytes, info.name, NULL);
        cr_assert_not_null(b->data[i]);
        cr_assert_eq(ops->fill(b->handle->stream, b->data[i], 0xff, bytes, NULL),
                     STRATA_OK);
        cr_assert_eq(strata_stream_synchronize(b->handle->stream, NULL), STRATA_OK);
        cr_assert_eq(strata_context_bind(b->context, i, b->data[i], NULL), STRATA_OK);
    }
}

static double difference(const float *a, const float *b, int64_t n)
{
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < n; i++) {
        double d = fabs((double)a[i] - (double)b[i]);
        worst = d <= worst ? worst : d; /* NaN counts */
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static void compare(struct built *plain, struct built *free_one, double tolerance,
                    unsigned seed, const char *when)
{
    strata_binding info = {.struct_size = sizeof info};
    for (int i = 0; i < strata_engine_bindings(free_one->engine); i++) {
        int64_t n, m;
        strata_engine_binding(free_one->engine, i, &info, NULL);
        float *a = values_of(plain, strata_engine_find(plain->engine, info.name), &n);
        float *b = values_of(free_one, i, &m);
        cr_assert_eq(n, m, "seed %u, %s", seed, info.name);
        double d = difference(a, b, n);
        cr_expect(d <= tolerance, "seed %u, %s, %s: differs by %g", seed, info.name, when,
                  d);
        free(a);
        free(b);
    }
}

/* The same engine by way of its file. */
static bool reload(struct built *b, struct session *t, const struct built *from)
{
    const char *file = in_scratch("net.engine");
    memset(b, 0, sizeof *b);
    b->handle = from->handle;
    bool good =
        strata_engine_save(from->engine, file, &t->err) == STRATA_OK &&
        strata_engine_load(&b->engine, b->handle, t->registry, file, &t->err) ==
            STRATA_OK &&
        strata_context_create(&b->context, b->engine, b->handle, &t->err) == STRATA_OK;
    return good;
}

/* Its answers are those of the engine that was saved, bit for bit. */
static void check_reloaded(struct session *t, struct built *other, unsigned seed)
{
    struct built loaded;
    bool good = reload(&loaded, t, other);
    cr_expect(good, "seed %u, loaded: %s", seed, t->err.message);
    for (int i = 0; i < 2 && good; i++)
        set_input(&loaded, i, seed);
    if (good) {
        cr_assert_eq(strata_context_run(loaded.context, &t->err), STRATA_OK,
                     "seed %u, loaded: %s", seed, t->err.message);
        compare(other, &loaded, 0, seed, "loaded from its file");
    }
    drop(&loaded);
}

static bool run_case(struct session *t, unsigned seed)
{
    struct sketch s;
    struct built plain, other;
    sketch_draw(&s, seed, t->handle->properties.kind);
    sketch_write(&s, in_scratch("net.ini"), true);
    bool good = build(&plain, t, t->host);
    cr_expect(good, "seed %u, plain: %s", seed, t->err.message);
    sketch_write(&s, in_scratch("net.ini"), false);
    if (good)
        good = build(&other, t, t->handle);
    else
        memset(&other, 0, sizeof other);
    cr_expect(good, "seed %u: %s", seed, t->err.message);
    for (int round = 0; round < 2 && good; round++) {
        double tolerance = s.half ? FP16_TOLERANCE : FP32_TOLERANCE;
        if (round)
            rebind(&other, seed);
        for (int i = 0; i < 2; i++) {
            set_input(&plain, i, seed + (unsigned)round);
            set_input(&other, i, seed + (unsigned)round);
        }
        cr_assert_eq(strata_context_run(plain.context, &t->err), STRATA_OK, "seed %u: %s",
                     seed, t->err.message);
        for (int i = 0; i < 2; i++) /* the second by a graph, where there are graphs */
            cr_assert_eq(strata_context_run(other.context, &t->err), STRATA_OK,
                         "seed %u: %s", seed, t->err.message);
        compare(&plain, &other, tolerance, seed, round ? "rebound" : "own memory");
        if (!round)
            check_reloaded(t, &other, seed);
    }
    drop(&plain);
    drop(&other);
    return good;
}

Test(random_networks, agree_with_their_plain_twins)
{
    struct session t = {0};
    const char *text = getenv("STRATA_RANDOM_NETWORKS");
    const char *from = getenv("STRATA_RANDOM_SEED");
    unsigned n = text ? (unsigned)atoi(text) : 150,
             first = from ? (unsigned)atoi(from) : 1;
    cr_assert_eq(strata_registry_create(&t.registry, NULL, &t.err), STRATA_OK, "%s",
                 t.err.message);
    cr_assert_eq(strata_create(&t.host, "host", &t.err), STRATA_OK, "%s", t.err.message);
    cr_assert_eq(strata_create(&t.handle, getenv("STRATA_TEST_DEVICE"), &t.err),
                 STRATA_OK, "%s", t.err.message);
    for (unsigned seed = first; seed < first + n; seed++)
        run_case(&t, seed);
    strata_destroy(t.handle);
    strata_destroy(t.host);
    strata_registry_destroy(t.registry);
}
