/* SPDX-License-Identifier: Apache-2.0
 *
 * Random networks with random pins of formats, every other one planned at random prices,
 * against the same network with none: every layer an output there, so that nothing is
 * fused, shared in place or in another format. STRATA_TEST_DEVICE names the device of the
 * former; the plain twins run on the host.
 */
#include <strata/strata.h>

#include <math.h>

#include "core/handle.h"
#include "planner/cost/cost.h"
#include "tests/engine/network_draw.h"
#include "tests/support/scratch.h"

#define FP32_TOLERANCE 2e-5
#define FP16_TOLERANCE 3e-2 /* of the largest value, after up to a dozen roundings */

/* ---- prices ------------------------------------------------------------------------
 * What the analytic model says (the linker's --wrap), up to 32 times as much or as little
 * by a number that is drawn for each impl in its formats and each size of a conversion:
 * so each is in some plan. */

static uint64_t price_seed; /* 0: as the model says */

int64_t __real_cost_of_run(const strata_node *n, const strata_impl *impl,
                           const struct registry_row *row, const strata_layer *layer,
                           const struct device_properties *d);
int64_t __wrap_cost_of_run(const strata_node *n, const strata_impl *impl,
                           const struct registry_row *row, const strata_layer *layer,
                           const struct device_properties *d);
int64_t __real_cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                                const struct device_properties *d);
int64_t __wrap_cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                                const struct device_properties *d);

static uint64_t hashed(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return hash;
}

static int64_t priced(int64_t cost, uint64_t hash)
{
    struct sketch draw = {.state = hash ^ price_seed * UINT64_C(0x9E3779B97F4A7C15)};
    sketch_roll(&draw, 1);
    const double factor = exp2(sketch_roll(&draw, 1001) / 100.0 - 5);
    return price_seed ? (int64_t)fmax(1, (double)cost * factor) : cost;
}

int64_t __wrap_cost_of_run(const strata_node *n, const strata_impl *impl,
                           const struct registry_row *row, const strata_layer *layer,
                           const struct device_properties *d)
{
    uint64_t hash = hashed(1, layer->name, strlen(layer->name));
    hash = hashed(hash, impl->name, strlen(impl->name));
    for (int i = 0; i < n->n_in; i++)
        hash = hashed(hash, &n->in[i].format, sizeof n->in[i].format);
    for (int i = 0; i < n->n_out; i++)
        hash = hashed(hash, &n->out[i].format, sizeof n->out[i].format);
    return priced(__real_cost_of_run(n, impl, row, layer, d), hash);
}

int64_t __wrap_cost_of_reformat(int64_t from_bytes, int64_t to_bytes,
                                const struct device_properties *d)
{
    const int64_t bytes[] = {from_bytes, to_bytes};
    return priced(__real_cost_of_reformat(from_bytes, to_bytes, d),
                  hashed(2, bytes, sizeof bytes));
}

/* ---- networks ---------------------------------------------------------------------- */

TestSuite(random_networks, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

struct session {
    strata_registry *registry;
    strata_handle *host, *handle;
    strata_error err;
};

struct arena {
    void *data;
    size_t bytes;
};

struct built {
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    struct arena arena;
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

static void note_arena(void *user, const strata_memory_event *event)
{
    struct arena *arena = user;
    if (event->what && strcmp(event->what, "the context's arena") == 0) {
        arena->data = (void *)event->ptr;
        arena->bytes = (size_t)event->bytes;
    }
}

static bool build(struct built *b, struct session *t, strata_handle *handle)
{
    memset(b, 0, sizeof *b);
    b->handle = handle;
    strata_set_memory_observer(handle, note_arena, &b->arena);
    bool good =
        strata_network_load(&b->network, in_scratch("net.ini"), t->registry, NULL,
                            &t->err) == STRATA_OK &&
        strata_engine_build(&b->engine, handle, b->network, &t->err) == STRATA_OK &&
        strata_context_create(&b->context, b->engine, handle, &t->err) == STRATA_OK;
    strata_set_memory_observer(handle, NULL, NULL);
    return good;
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

/* A run whose arena has NaN bits at first: what is read before it is written shows. */
static int run(struct built *b, strata_error *err)
{
    const struct device_ops *ops = b->handle->device->ops;
    if (b->arena.bytes > 0)
        cr_assert_eq(
            ops->fill(b->handle->stream, b->arena.data, 0xff, b->arena.bytes, NULL),
            STRATA_OK);
    cr_assert_eq(strata_stream_synchronize(b->handle->stream, NULL), STRATA_OK);
    return strata_context_run(b->context, err);
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
        worst = isnan(worst) || d <= worst ? worst : d; /* a NaN stays */
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
    price_seed = seed % 2 ? seed : 0;
    if (good)
        good = build(&other, t, t->handle);
    else
        memset(&other, 0, sizeof other);
    price_seed = 0;
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
            cr_assert_eq(run(&other, &t->err), STRATA_OK, "seed %u: %s", seed,
                         t->err.message);
        compare(&plain, &other, tolerance, seed, round ? "rebound" : "own memory");
        if (!round)
            check_reloaded(t, &other, seed);
    }
    drop(&plain);
    drop(&other);
    return good;
}

static void run_cases(unsigned first, unsigned n)
{
    struct session t = {0};
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

Test(random_networks, agree_with_their_plain_twins)
{
    const char *text = getenv("STRATA_RANDOM_NETWORKS");
    const char *from = getenv("STRATA_RANDOM_SEED");
    run_cases(from ? (unsigned)atoi(from) : 1, text ? (unsigned)atoi(text) : 150);
}

/* A range that three read, where labels of several precisions are many: planning took
 * minutes. */
Test(random_networks, of_many_labels_are_planned)
{
    run_cases(902503, 1);
}
