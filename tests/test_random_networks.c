/* SPDX-License-Identifier: Apache-2.0
 *
 * Random networks with random pins of formats against the same network with none: every
 * layer an output there, so that nothing is fused, shared in place or in another format.
 * STRATA_TEST_DEVICE names the device of the former; the plain twins run on the host.
 */
#include <strata/strata.h>

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/handle.h"

#define MAX_NODES 16
#define FP32_TOLERANCE 2e-5
#define FP16_TOLERANCE 3e-2 /* of the largest value, after up to a dozen roundings */

static char folder[] = "/tmp/strata-random-XXXXXX";
static char path[64];

static void open_folder(void)
{
    cr_assert_neq(mkdtemp(folder), NULL);
    snprintf(path, sizeof path, "%s/net.ini", folder);
}

static void close_folder(void)
{
    unlink(path);
    rmdir(folder);
}

TestSuite(random_networks, .init = open_folder, .fini = close_folder, .timeout = 300);

/* ---- networks as text ------------------------------------------------------------- */

struct node {
    int rank;
    int64_t dims[5];
    char text[512]; /* the section's keys, without pins */
    char pin[96];   /* "format = ..." lines, or empty */
};

/* Nodes 0 and 1 are inputs, the others layers; node i is named n<i>. */
struct sketch {
    uint64_t state; /* of the generator */
    struct node nodes[MAX_NODES];
    int n;
    bool half; /* may hold FP16 */
    int device;
};

/* By kind of device: what every layer can write there. */
static const char *const pins_fp32[STRATA_DEVICE_KINDS][4] = {
    {"fp32:nchw", "fp32:nhwc", "fp32:nc/8hw8", "fp32:nc/16hw16"},
    {"fp32:nchw", "fp32:nchw", "fp32:nchw", "fp32:nchw"}};
static const char *const pins_fp16[STRATA_DEVICE_KINDS][4] = {
    {"fp16:nchw", "fp16:nhwc", "fp16:nc/2hw2", "fp16:nhwc8"},
    {"fp16:nchw", "fp16:nhwc8", "fp16:nc/2hw2", "fp16:nhwc8"}};
static const char *const kinds[] = {"relu",     "leaky_relu",   "relu6",     "sigmoid",
                                    "tanh",     "elu",          "selu",      "softplus",
                                    "softsign", "gelu",         "silu",      "mish",
                                    "clip",     "hard_sigmoid", "hard_swish"};

static int roll(struct sketch *s, int sides)
{
    s->state = s->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((s->state >> 33) % (unsigned)sides);
}

static struct node *any(struct sketch *s, int *index)
{
    /* Mostly the latest, for chains; else any, for branches. */
    *index = roll(s, 3) ? s->n - 1 : roll(s, s->n);
    return &s->nodes[*index];
}

static void keys(struct node *n, const char *format, ...)
{
    size_t used = strlen(n->text);
    va_list args;
    va_start(args, format);
    vsnprintf(n->text + used, sizeof n->text - used, format, args);
    va_end(args);
}

static int max_dim(const struct node *n)
{
    int64_t most = 0;
    for (int i = 1; i < n->rank; i++)
        most = n->dims[i] > most ? n->dims[i] : most;
    return (int)most;
}

static bool same_dims(const struct node *a, const struct node *b, int but)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (i != but && a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* A second operand that agrees with the first but in one dim; the first if none does. */
static int partner(struct sketch *s, int first, int but)
{
    int start = roll(s, s->n);
    for (int i = 0; i < s->n; i++) {
        int j = (start + i) % s->n;
        if (same_dims(&s->nodes[first], &s->nodes[j], but))
            return j;
    }
    return first;
}

typedef void (*maker)(struct sketch *s, struct node *n, int in);

static void activation(struct sketch *s, struct node *n, int in)
{
    const char *kind = kinds[roll(s, (int)(sizeof kinds / sizeof *kinds))];
    keys(n, "type = Activation\ninputs = n%d\nkind = %s\n", in, kind);
    if (!strcmp(kind, "clip"))
        keys(n, "alpha = -0.25\nbeta = 0.75\n");
}

static void convolution(struct sketch *s, struct node *n, int in)
{
    int filters = 1 + roll(s, 20), kernel = roll(s, 2) ? 3 : 1;
    int groups = roll(s, 4) == 0 ? (int)n->dims[1] : 1;
    if (groups > 1)
        filters = groups * (1 + roll(s, 2));
    keys(n, "type = Convolution\ninputs = n%d\nfilters = %d\nkernel = %d\npad = %d\n", in,
         filters, kernel, kernel / 2);
    keys(n, "groups = %d\nweight = w\n%s", groups, roll(s, 2) ? "bias = w\n" : "");
    n->dims[1] = filters;
}

static void pooling(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Pooling\ninputs = n%d\nkind = %s\nkernel = 3\npad = 1\n", in,
         roll(s, 2) ? "max" : "average");
}

static void scale(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Scale\ninputs = n%d\nscale = 0.%d\nshift = -0.%d\n", in,
         1 + roll(s, 9), roll(s, 9));
}

/* Of equal dims, or one of them with a single channel. */
static void element_wise(struct sketch *s, struct node *n, int in)
{
    static const char *const operations[] = {"sum", "sub", "product", "max", "min"};
    int other = partner(s, in, roll(s, 2) ? 1 : -1);
    int64_t channels = s->nodes[other].dims[1];
    if (channels != n->dims[1] && channels != 1 && n->dims[1] != 1)
        other = in;
    else if (channels > n->dims[1])
        n->dims[1] = channels;
    keys(n, "type = ElementWise\ninputs = n%d, n%d\nop = %s\n", in, other,
         operations[roll(s, 5)]);
}

static void concatenation(struct sketch *s, struct node *n, int in)
{
    int other = partner(s, in, 1);
    keys(n, "type = Concatenation\ninputs = n%d, n%d\naxis = 1\n", in, other);
    n->dims[1] += s->nodes[other].dims[1];
}

static void slice(struct sketch *s, struct node *n, int in)
{
    int begin = roll(s, (int)n->dims[1]),
        end = begin + 1 + roll(s, (int)n->dims[1] - begin);
    keys(n, "type = Slice\ninputs = n%d\naxes = 1\nbegin = %d\nend = %d\n", in, begin,
         end);
    n->dims[1] = end - begin;
}

static void softmax(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Softmax\ninputs = n%d\naxis = %d\n", in, roll(s, n->rank));
}

static void identity(struct sketch *s, struct node *n, int in)
{
    (void)s;
    keys(n, "type = Identity\ninputs = n%d\n", in);
}

static void constant(struct sketch *s, struct node *n, int in)
{
    (void)s;
    (void)in;
    keys(n, "type = Constant\nvalue = w\nshape = ");
    for (int i = 0; i < n->rank; i++)
        keys(n, "%s%d", i ? " x " : "", (int)n->dims[i]);
    keys(n, "\n");
}

static void shuffle(struct sketch *s, struct node *n, int in)
{
    int a = n->rank - 1, b = 1 + roll(s, n->rank - 1);
    int64_t kept = n->dims[a];
    keys(n, "type = Shuffle\ninputs = n%d\nfirst = ", in);
    for (int i = 0; i < n->rank; i++)
        keys(n, "%s%d", i ? ", " : "", i == a ? b : i == b ? a : i);
    keys(n, "\n");
    n->dims[a] = n->dims[b];
    n->dims[b] = kept;
}

static void reshape(struct sketch *s, struct node *n, int in)
{
    int64_t pixels = 1;
    (void)s;
    for (int i = 2; i < n->rank; i++)
        pixels *= n->dims[i];
    keys(n, "type = Shuffle\ninputs = n%d\nshape = %d x %d", in, (int)n->dims[0],
         (int)pixels);
    n->dims[2] = n->dims[1];
    n->dims[1] = pixels;
    for (int i = 2; i < n->rank; i++)
        keys(n, " x %d", i == 2 ? (int)n->dims[2] : 1);
    for (int i = 3; i < n->rank; i++)
        n->dims[i] = 1;
    keys(n, "\n");
}

static void padding(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Padding\ninputs = n%d\nbegin = 1\nend = %d\nmode = edge\n", in,
         roll(s, 2));
    n->dims[n->rank - 1] += 1 + (strstr(n->text, "end = 1") != NULL);
}

static const struct {
    maker make;
    int weight;
} makers[] = {{activation, 5},   {convolution, 4},   {pooling, 2}, {scale, 2},
              {element_wise, 4}, {concatenation, 3}, {slice, 2},   {softmax, 1},
              {identity, 3},     {constant, 1},      {shuffle, 1}, {reshape, 1},
              {padding, 1}};

static maker choose_maker(struct sketch *s)
{
    int total = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        total += makers[i].weight;
    int left = roll(s, total);
    for (size_t i = 0;; i++)
        if ((left -= makers[i].weight) < 0)
            return makers[i].make;
}

static void add_layer(struct sketch *s)
{
    int in;
    struct node n = *any(s, &in);
    n.text[0] = n.pin[0] = '\0';
    maker make = choose_maker(s);
    if ((make == concatenation || make == shuffle || make == reshape ||
         make == padding) &&
        max_dim(&n) > 40)
        make = identity;
    make(s, &n, in);
    if (roll(s, 3) == 0)
        snprintf(n.pin, sizeof n.pin, "format = %s\n",
                 (s->half && roll(s, 2) ? pins_fp16 : pins_fp32)[s->device][roll(s, 4)]);
    s->nodes[s->n++] = n;
}

static void invent(struct sketch *s, unsigned seed, int device)
{
    *s = (struct sketch){.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1,
                         .device = device};
    int layers = 2 + roll(s, MAX_NODES - 4), rank = 3 + roll(s, 3);
    s->half = roll(s, 3) == 0;
    for (int i = 0; i < 2; i++) {
        struct node *n = &s->nodes[s->n++];
        *n = (struct node){.rank = rank, .dims = {2, 1, 5, 4, 3}};
        n->dims[0] = i ? s->nodes[0].dims[0] : 1 + roll(s, 3);
        n->dims[1] = roll(s, 3) ? 1 + roll(s, 18) : 1;
        if (roll(s, 3) == 0)
            snprintf(n->pin, sizeof n->pin, "format = %s\n",
                     pins_fp32[s->device][roll(s, 4)]);
    }
    for (int i = 0; i < layers; i++)
        add_layer(s);
}

static bool is_read(const struct sketch *s, int node)
{
    char name[2][16];
    snprintf(name[0], sizeof name[0], " n%d\n", node);
    snprintf(name[1], sizeof name[1], " n%d,", node);
    for (int i = 2; i < s->n; i++)
        if (strstr(s->nodes[i].text, name[0]) || strstr(s->nodes[i].text, name[1]))
            return true;
    return false;
}

/* The plain twin gives every layer; the other what nothing reads, and some that are. */
static void write_network(struct sketch *s, bool plain)
{
    FILE *f = fopen(path, "w");
    cr_assert_neq(f, NULL);
    fprintf(f, "[network]\nformat = 1\noutputs = n%d", s->n - 1);
    for (int i = 2; i < s->n - 1; i++)
        if (plain || !is_read(s, i) || roll(s, 6) == 0)
            fprintf(f, ", n%d", i);
    fprintf(f, "\n[weights w]\nrandom = 5\n[build]\ncosts = analytic\nprecision = %s\n",
            plain || !s->half ? "fp32" : "any");
    if (plain)
        fprintf(f, "formats = fp32:nchw\nfusion = no\n");
    for (int i = 0; i < s->n; i++) {
        const struct node *n = &s->nodes[i];
        fprintf(f, "[%s n%d]\n", i < 2 ? "input" : "layer", i);
        for (int k = 0; i < 2 && k < n->rank; k++)
            fprintf(f, "%s%d", k ? " x " : "shape = ", (int)n->dims[k]);
        fprintf(f, "%s\n%s", n->text, plain ? "" : n->pin);
    }
    fclose(f);
}

/* ---- running them -------------------------------------------------------------------
 */

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
    strata_binding info;
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
    return strata_network_load(&b->network, path, t->registry, NULL, &t->err) ==
               STRATA_OK &&
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
    strata_binding info;
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
    strata_binding info;
    cr_assert_eq(strata_engine_binding(b->engine, index, &info, NULL), STRATA_OK);
    strata_desc d = linear_desc(&info.desc);
    int64_t count = strata_desc_count(&d);
    struct sketch noise = {.state = seed + (unsigned)index};
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)roll(&noise, 2001) / 1000 - 1;
    void *data = calloc(1, (size_t)info.bytes);
    cr_assert_eq(strata_reformat(&info.desc, data, &d, values, NULL), STRATA_OK);
    cr_assert_eq(strata_copy_in(b->context, index, data, NULL), STRATA_OK);
    free(data);
    free(values);
}

/* Memory of the caller's for every other binding, full of NaN bits. */
static void rebind(struct built *b, unsigned seed)
{
    strata_binding info;
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
    strata_binding info;
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
    char file[sizeof path + 8];
    snprintf(file, sizeof file, "%s.engine", path);
    memset(b, 0, sizeof *b);
    b->handle = from->handle;
    bool good =
        strata_engine_save(from->engine, file, &t->err) == STRATA_OK &&
        strata_engine_load(&b->engine, b->handle, t->registry, file, &t->err) ==
            STRATA_OK &&
        strata_context_create(&b->context, b->engine, b->handle, &t->err) == STRATA_OK;
    unlink(file);
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
    invent(&s, seed, t->handle->properties.kind);
    write_network(&s, true);
    bool good = build(&plain, t, t->host);
    cr_expect(good, "seed %u, plain: %s", seed, t->err.message);
    write_network(&s, false);
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
