/* SPDX-License-Identifier: Apache-2.0
 *
 * What is quantised, and what comes of it: schemes, weights, files, losses and budgets of
 * small networks with weights and data drawn anew.
 */
#include "calibrate/collected.h"
#include "calibrate/quantised.h"
#include "calibrate/sensitivity.h"
#include "calibrate/watch.h"
#include "calibrate/weights.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Two branches that meet in a Concatenation, a sum with a shortcut, and layers between.
 */
static const char net_text[] = "[network]\nformat = 1\noutputs = prob\n"
                               "[input x]\nshape = 1 x 3 x 9 x 7\n"
                               "[weights w]\nrandom = %u\n"
                               "[layer conv1]\ntype = Convolution\nfilters = 6\n"
                               "kernel = 3x3\npad = 1\nweights = w\n"
                               "[layer relu1]\ntype = Activation\n"
                               "[layer pool]\ntype = Pooling\nkernel = 2x2\nstride = 2\n"
                               "[layer left]\ntype = Convolution\nfilters = 5\n"
                               "kernel = 1x1\nweights = w\n"
                               "[layer right]\ntype = Convolution\ninputs = pool\n"
                               "filters = 3\nkernel = 1x1\nweights = w\nbias = none\n"
                               "[layer join]\ntype = Concatenation\n"
                               "inputs = left, right\n"
                               "[layer conv2]\ntype = Convolution\nfilters = 8\n"
                               "kernel = 3x3\npad = 1\ngroups = 2\nweights = w\n"
                               "[layer sum]\ntype = ElementWise\ninputs = conv2, join\n"
                               "[layer up]\ntype = Deconvolution\nfilters = 4\n"
                               "kernel = 2x2\nstride = 2\ngroups = 2\nweights = w\n"
                               "[layer dense]\ntype = FullyConnected\nunits = 7\n"
                               "weights = w\n"
                               "[layer flat]\ntype = Shuffle\nshape = 0, 7\n"
                               "[layer last]\ntype = MatrixMultiply\nunits = 5\n"
                               "b = w\n"
                               "[layer prob]\ntype = Softmax\naxis = 1\n";

enum { PIXELS = 3 * 9 * 7, SAMPLES = 12 };

struct bench {
    strata_handle *handle;
    strata_registry *registry;
    strata_network *net;
    struct scheme scheme;
    struct probe floats;
    struct samples samples;
    float data[SAMPLES][PIXELS];
    size_t loads;
};

static uint64_t state;

static double draw(void) /* -1 to 1 */
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(int64_t)state / 9223372036854775808.0;
}

static void ok(int status, const strata_error *err)
{
    cr_assert_eq(status, STRATA_OK, "%s", err->message);
}

static int load(void *of, strata_context *c, size_t i, strata_error *err)
{
    struct bench *b = of;
    b->loads++;
    return strata_copy_in(c, 0, b->data[i], err);
}

static void open_text(struct bench *b, const char *text, const bool *keep)
{
    strata_error err = {0};
    const struct network_memory memory = {.text = text, .text_size = strlen(text)};
    b->samples = (struct samples){SAMPLES, b, load, NULL};
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PIXELS; p++)
            b->data[i][p] = (float)draw();
    ok(strata_create(&b->handle, "host", &err), &err);
    ok(strata_registry_create(&b->registry, NULL, &err), &err);
    ok(network_parse(&b->net, &memory, "net", b->registry, &err), &err);
    ok(scheme_make(&b->scheme, b->net, keep, false, &err), &err);
    ok(probe_open(&b->floats, b->handle, b->net, &err), &err);
}

static void open_bench(struct bench *b)
{
    char text[sizeof net_text + 16];
    memset(b, 0, sizeof *b);
    state = (uint64_t)time(NULL) * 2654435761u;
    snprintf(text, sizeof text, net_text, (unsigned)(state >> 40));
    open_text(b, text, NULL);
}

static void close_bench(struct bench *b)
{
    probe_close(&b->floats);
    scheme_free(&b->scheme);
    strata_network_destroy(b->net);
    strata_registry_destroy(b->registry);
    strata_destroy(b->handle);
}

static int tensor(const strata_network *net, const char *name)
{
    for (size_t t = 0; t < net->n_tensors; t++)
        if (strcmp(net->tensors[t].name, name) == 0)
            return (int)t;
    cr_assert_fail("no tensor %s", name);
    return -1;
}

static const struct network_layer *layer(const strata_network *net, const char *name)
{
    return &net->layers[net->tensors[tensor(net, name)].producer];
}

static void collect_ranges(struct bench *b, struct ranges *r)
{
    struct collection c;
    strata_error err = {0};
    ok(collection_open(&c, &b->scheme, &err), &err);
    ok(collection_run(&c, b->floats.context, &b->samples, SAMPLES, &err), &err);
    ok(collection_ranges(r, &c, range_method_find("max"), &quant_int8, RANGE_SHARE, &err),
       &err);
    collection_free(&c);
}

/* ---- schemes ---------------------------------------------------------------------- */

Test(scheme, takes_inputs_of_what_computes_and_what_carries_between)
{
    static const char *const yes[] = {"x",    "relu1", "pool", "left",  "right",
                                      "join", "sum",   "up",   "dense", "flat"};
    static const char *const no[] = {"conv1", "conv2", "last", "prob"};
    struct bench b;
    open_bench(&b);
    cr_expect_eq(b.scheme.n_layers, 7);
    cr_expect_eq(b.scheme.n_tensors, sizeof yes / sizeof *yes);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        cr_expect(b.scheme.tensors[tensor(b.net, yes[i])], "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        cr_expect(!b.scheme.tensors[tensor(b.net, no[i])], "%s", no[i]);
    close_bench(&b);
}

Test(scheme, one_scale_is_shared_by_what_only_moves)
{
    struct bench b;
    open_bench(&b);
    const int *shares = b.scheme.shares;
    const int left = tensor(b.net, "left"), sum = tensor(b.net, "sum");
    cr_expect_eq(shares[tensor(b.net, "right")], shares[left]);
    cr_expect_eq(shares[tensor(b.net, "join")], shares[left]);
    cr_expect_eq(shares[tensor(b.net, "pool")], shares[tensor(b.net, "relu1")]);
    cr_expect_eq(shares[tensor(b.net, "flat")], shares[tensor(b.net, "dense")]);
    cr_expect_neq(shares[tensor(b.net, "pool")], shares[left]);
    cr_expect_neq(shares[sum], shares[left]);
    close_bench(&b);
}

Test(scheme, layers_that_are_kept_read_floats)
{
    struct bench b;
    struct scheme s;
    strata_error err = {0};
    open_bench(&b);
    bool *keep = calloc(b.net->n_layers, sizeof *keep);
    keep[layer(b.net, "conv1") - b.net->layers] = true;
    keep[layer(b.net, "up") - b.net->layers] = true;
    ok(scheme_make(&s, b.net, keep, false, &err), &err);
    cr_expect_eq(s.n_layers, 5);
    cr_expect(!s.tensors[tensor(b.net, "x")] && !s.tensors[tensor(b.net, "sum")]);
    cr_expect(!s.reads[layer(b.net, "up") - b.net->layers]);
    scheme_free(&s);
    ok(scheme_make(&s, b.net, NULL, true, &err), &err);
    cr_expect(s.n_layers == 1 && s.n_tensors == 0, "MatrixMultiply's weights alone");
    scheme_free(&s);
    free(keep);
    close_bench(&b);
}

/* ---- weights ---------------------------------------------------------------------- */

/* Channel of an element by the definition of each layer. */
static int64_t channel(const char *name, const int64_t *dims, int64_t i)
{
    if (strcmp(name, "up") == 0) /* C x K/groups x 2 x 2 */
        return i / 4 % dims[1];
    if (strcmp(name, "last") == 0) /* K x N */
        return i % dims[1];
    int64_t rest = 1;
    for (int d = 1; d < 4 && dims[d]; d++)
        rest *= dims[d];
    return i / rest;
}

Test(weights, are_within_half_a_step_of_each_channels_scale)
{
    static const char *const names[] = {"conv1", "conv2", "up", "dense", "last"};
    struct bench b;
    open_bench(&b);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const struct network_layer *l = layer(b.net, names[k]);
        const struct network_weight *w = &l->weights[0];
        struct int8_weight q;
        strata_error err = {0};
        ok(int8_weight_make(&q, l, scheme_computes(b.net, l), &err), &err);
        float *from = malloc((size_t)q.count * sizeof *from);
        int *most = calloc((size_t)q.channels, sizeof *most);
        double noise = 0;
        ok(network_weight_load(w, from, &err), &err);
        for (int64_t i = 0; i < q.count; i++) {
            const int64_t c = channel(names[k], w->dims, i);
            cr_assert(c < q.channels, "%s", names[k]);
            const double off = (double)from[i] - q.values[i] * (double)q.scales[c];
            cr_expect(fabs(off) <= (double)q.scales[c] * 0.5000001, "%s: %lld", names[k],
                      (long long)i);
            most[c] = abs(q.values[i]) > most[c] ? abs(q.values[i]) : most[c];
            noise += off * off;
        }
        for (int64_t c = 0; c < q.channels; c++)
            cr_expect_eq(most[c], 127, "%s: channel %lld", names[k], (long long)c);
        cr_expect_float_eq(q.noise, noise, noise * 1e-9);
        free(from);
        free(most);
        int8_weight_free(&q);
    }
    close_bench(&b);
}

/* ---- collections ------------------------------------------------------------------ */

static void collect_with(struct bench *b, struct collection *c, int64_t threads)
{
    strata_error err = {0};
    struct probe p;
    b->net->runtime.threads = threads;
    ok(probe_open(&p, b->handle, b->net, &err), &err);
    ok(collection_open(c, &b->scheme, &err), &err);
    ok(collection_run(c, p.context, &b->samples, SAMPLES, &err), &err);
    probe_close(&p);
}

Test(collection, is_bit_for_bit_the_same_on_one_thread_and_on_many)
{
    struct bench b;
    struct collection one, many;
    open_bench(&b);
    collect_with(&b, &one, 1);
    collect_with(&b, &many, 4);
    for (size_t t = 0; t < b.net->n_tensors; t++)
        if (one.tensors[t])
            cr_expect(memcmp(one.tensors[t], many.tensors[t], sizeof **one.tensors) == 0,
                      "%s", b.net->tensors[t].name);
    cr_expect_eq(one.tensors[tensor(b.net, "x")]->seen, SAMPLES * PIXELS);
    collection_free(&one);
    collection_free(&many);
    close_bench(&b);
}

Test(collection, that_was_kept_goes_on_to_the_same_end)
{
    char path[] = "/tmp/strata-collected-XXXXXX";
    struct bench b;
    struct collection whole, part, rest;
    strata_error err = {0};
    open_bench(&b);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
    ok(collection_open(&whole, &b.scheme, &err), &err);
    ok(collection_open(&part, &b.scheme, &err), &err);
    ok(collection_open(&rest, &b.scheme, &err), &err);
    ok(collection_run(&whole, b.floats.context, &b.samples, SAMPLES, &err), &err);
    ok(collection_run(&part, b.floats.context, &b.samples, 5, &err), &err);
    ok(collected_write(&part, path, SAMPLES, &err), &err);
    ok(collected_read(&rest, path, SAMPLES, &err), &err);
    cr_expect_eq(rest.done, 5);
    b.loads = 0;
    ok(collection_run(&rest, b.floats.context, &b.samples, SAMPLES, &err), &err);
    cr_expect_eq(b.loads, SAMPLES - 5);
    for (size_t t = 0; t < b.net->n_tensors; t++)
        if (whole.tensors[t])
            cr_expect(memcmp(whole.tensors[t], rest.tensors[t], sizeof **rest.tensors) ==
                          0,
                      "%s", b.net->tensors[t].name);
    collection_free(&whole);
    collection_free(&part);
    collection_free(&rest);
    unlink(path);
    close_bench(&b);
}

/* Bytes of a good file changed at random: refused, or read and whole. */
Test(collection, damaged_files_are_refused_or_read)
{
    struct bench b;
    struct collection c;
    strata_error err = {0};
    char path[] = "/tmp/strata-collected-XXXXXX", *good = NULL;
    size_t size = 0;
    open_bench(&b);
    const int fd = mkstemp(path);
    cr_assert(fd >= 0 && close(fd) == 0);
    ok(collection_open(&c, &b.scheme, &err), &err);
    ok(collection_run(&c, b.floats.context, &b.samples, 1, &err), &err);
    ok(collected_write(&c, path, SAMPLES, &err), &err);
    FILE *f = fopen(path, "rb");
    cr_assert(f && (good = malloc(1 << 20)) && (size = fread(good, 1, 1 << 20, f)));
    fclose(f);
    int refused = 0;
    for (int round = 0; round < 600; round++) {
        char *text = malloc(size);
        memcpy(text, good, size);
        for (int k = 0; k <= round % 3; k++)
            text[(size_t)(fabs(draw()) * (double)size)] =
                round % 2 ? (char)(draw() * 128) : "0-: ,.\n9"[(int)(fabs(draw()) * 8)];
        strata_error why = {0};
        const int status = collected_parse(&c, text, size, SAMPLES, "x", &why);
        cr_assert_eq(status, why.status);
        refused += status != STRATA_OK;
        for (size_t t = 0; t < b.net->n_tensors && status == STRATA_OK; t++) {
            int64_t sum = 0;
            for (int i = 0; c.tensors[t] && i < 2 * HISTOGRAM_SIDE; i++)
                sum += c.tensors[t]->bins[i];
            cr_expect(!c.tensors[t] || sum == c.tensors[t]->seen);
        }
        free(text);
    }
    cr_expect(refused > 300, "%d of 600 are refused", refused);
    collection_free(&c);
    free(good);
    unlink(path);
    close_bench(&b);
}

Test(collection, ranges_shared_are_those_of_all_values)
{
    struct bench b;
    struct ranges r = {0};
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    const struct range *left = ranges_find(&r, "left"), *join = ranges_find(&r, "join");
    cr_assert(left && join && r.n == b.scheme.n_tensors);
    cr_expect(left->low == join->low && left->high == join->high);
    cr_expect_eq(join->seen, left->seen + ranges_find(&r, "right")->seen);
    /* Edited apart, they become the widest. */
    ok(ranges_put(&r, "left", -1e3, 0, 1, &err), &err);
    ok(ranges_put(&r, "right", 0, 2e3, 1, &err), &err);
    ok(ranges_share(&r, &b.scheme, &err), &err);
    join = ranges_find(&r, "join");
    cr_expect(join->low == -1e3 && join->high == 2e3);
    ranges_free(&r);
    close_bench(&b);
}

/* ---- the quantised network -------------------------------------------------------- */

static void open_quantised(struct bench *b, struct probe *p, struct ranges *r,
                           const double **corrections)
{
    strata_error err = {0};
    const struct quantising q = {.scheme = &b->scheme,
                                 .registry = b->registry,
                                 .ranges = r,
                                 .corrections = corrections};
    ok(probe_open_quantised(p, b->handle, &q, &err), &err);
}

static double rounded(double x, double scale)
{
    return fmin(fmax(nearbyint((double)((float)x / (float)scale)), -128), 127) * scale;
}

/* conv1 by its definition, of rounded inputs and weights. */
Test(quantised, a_layer_is_what_int8_gives)
{
    struct bench b;
    struct ranges r = {0};
    struct probe p;
    struct int8_weight w;
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    open_quantised(&b, &p, &r, NULL);
    const struct network_layer *l = layer(b.net, "conv1");
    ok(int8_weight_make(&w, l, scheme_computes(b.net, l), &err), &err);
    float bias[6] = {0}, from[6 * 27];
    if (network_has_weight(l, 1))
        ok(network_weight_load(&l->weights[1], bias, &err), &err);
    ok(network_weight_load(&l->weights[0], from, &err), &err);
    const double scale = (double)quantised_scale(ranges_find(&r, "x"));
    struct losses losses;
    ok(losses_open(&losses, &b.scheme, &err), &err);
    ok(losses_run(&losses, &b.floats, &p, &b.samples, 1, &err), &err);
    double signal = 0, noise = 0;
    for (int k = 0; k < 6; k++)
        for (int oy = 0; oy < 9; oy++)
            for (int ox = 0; ox < 7; ox++) {
                double y = (double)bias[k], q = y;
                for (int t = 0; t < 27; t++) {
                    const int c = t / 9, iy = oy + t / 3 % 3 - 1, ix = ox + t % 3 - 1;
                    if (iy < 0 || iy > 8 || ix < 0 || ix > 6)
                        continue;
                    const double in = (double)b.data[0][(c * 9 + iy) * 7 + ix];
                    const int64_t at = k * 27 + t;
                    y += in * (double)from[at];
                    q += rounded(in, scale) * w.values[at] * (double)w.scales[k];
                }
                signal += y * y;
                noise += (y - q) * (y - q);
            }
    const struct layer_loss *loss = &losses.layers[l - b.net->layers];
    cr_expect_float_eq(loss->out.signal, signal, signal * 1e-5);
    cr_expect_float_eq(loss->out.noise, noise, noise * 1e-2, "%g, not %g",
                       loss->out.noise, noise);
    losses_free(&losses);
    int8_weight_free(&w);
    probe_close(&p);
    ranges_free(&r);
    close_bench(&b);
}

Test(quantised, corrected_biases_leave_no_mean_error)
{
    struct bench b;
    struct ranges r = {0};
    struct probe p;
    struct losses before, after;
    const double **corrections;
    strata_error err = {0};
    open_bench(&b);
    collect_ranges(&b, &r);
    open_quantised(&b, &p, &r, NULL);
    ok(losses_open(&before, &b.scheme, &err), &err);
    ok(losses_run(&before, &b.floats, &p, &b.samples, SAMPLES, &err), &err);
    ok(losses_corrections(&corrections, &before, &err), &err);
    probe_close(&p);
    open_quantised(&b, &p, &r, corrections);
    ok(losses_open(&after, &b.scheme, &err), &err);
    ok(losses_run(&after, &b.floats, &p, &b.samples, SAMPLES, &err), &err);
    for (size_t i = 0; i < b.net->n_layers; i++) {
        const struct layer_loss *e = &after.layers[i], *was = &before.layers[i];
        for (int64_t k = 0; k < e->channels; k++)
            cr_expect(fabs(e->off[k]) / (double)e->count < 1e-5,
                      "%s: channel %lld is off by %g", b.net->layers[i].name,
                      (long long)k, e->off[k] / (double)e->count);
        cr_expect(e->channels == 0 || was->out.noise > 0, "nothing was rounded");
        cr_expect_float_eq(e->out.noise, was->mended.noise, was->out.noise * 1e-3, "%s",
                           b.net->layers[i].name);
    }
    losses_free(&before);
    losses_free(&after);
    free(corrections);
    probe_close(&p);
    ranges_free(&r);
    close_bench(&b);
}

Test(quantised, a_tensor_without_a_range_is_named)
{
    struct bench b;
    struct ranges r = {0}, less = {0};
    struct quantised made;
    strata_error err = {0};
    static const struct quantised_names names = {"w.safetensors", NULL};
    open_bench(&b);
    collect_ranges(&b, &r);
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.list[i].tensor, "pool") != 0)
            ok(ranges_put(&less, r.list[i].tensor, r.list[i].low, r.list[i].high, 1,
                          &err),
               &err);
    const struct quantising q = {
        .scheme = &b.scheme, .registry = b.registry, .ranges = &less};
    cr_expect_eq(quantised_make(&made, &q, &names, &err), STRATA_ENOTFOUND);
    cr_expect(strstr(err.message, "'pool'") != NULL, "%s", err.message);
    cr_expect_null(made.text);
    ranges_free(&r);
    ranges_free(&less);
    close_bench(&b);
}

/* A range so narrow for one tensor that its reader loses everything: a budget keeps that
 * layer, and no other. */
Test(quantised, a_budget_keeps_the_layer_that_hurts)
{
    struct bench b;
    struct ranges r = {0};
    strata_error err = {0};
    int64_t labels[SAMPLES];
    struct answers answers, *alone;
    open_bench(&b);
    collect_ranges(&b, &r);
    const size_t hurt = (size_t)(layer(b.net, "up") - b.net->layers);
    ok(ranges_put(&r, "sum", 0, 1e-6, 1, &err), &err);
    for (int i = 0; i < SAMPLES; i++) { /* what floats answer is right */
        float prob[5];
        ok(load(&b, b.floats.context, (size_t)i, &err), &err);
        ok(strata_context_run(b.floats.context, &err), &err);
        ok(strata_copy_out(b.floats.context, 1, prob, &err), &err);
        labels[i] = 0;
        for (int k = 1; k < 5; k++)
            labels[i] = prob[k] > prob[labels[i]] ? k : labels[i];
    }
    bool *keep = calloc(b.net->n_layers, sizeof *keep);
    alone = calloc(b.net->n_layers, sizeof *alone);
    const struct quantising q = {
        .scheme = &b.scheme, .registry = b.registry, .ranges = &r};
    const struct experiment x = {&b.floats, b.handle, &q, &b.samples, labels};
    ok(experiment_alone(alone, &x, &err), &err);
    for (size_t i = 0; i < b.net->n_layers; i++)
        cr_expect(alone[i].out.noise <= alone[hurt].out.noise, "%s",
                  b.net->layers[i].name);
    ok(experiment_choose(keep, &answers, &x, alone, SAMPLES, &err), &err);
    cr_expect(!keep[hurt], "nothing is kept where all may be lost");
    ok(experiment_choose(keep, &answers, &x, alone, 0, &err), &err);
    cr_expect_eq(answers.right, SAMPLES);
    cr_expect_eq(answers.right_floats, SAMPLES);
    const bool needed = alone[hurt].right < SAMPLES;
    cr_expect(!needed || keep[hurt], "up is what hurts");
    free(keep);
    free(alone);
    ranges_free(&r);
    close_bench(&b);
}
