/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a network is quantised, and weights as int8.
 */
#include "tests/calibrate/small_net.h"

#include <strata/narrow.h>

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

/* A residual block with a convolution on either side of its sum. */
#define SIDE(name)                                                                       \
    "[layer " name "]\ntype = Convolution\ninputs = in\nfilters = 4\n"                   \
    "kernel = 1x1\nweights = w\n"
#define BLOCK(inputs, more)                                                              \
    "[network]\nformat = 1\noutputs = out\n[input x]\nshape = 1 x 3 x 9 x 7\n"           \
    "[weights w]\nrandom = 5\n[layer in]\ntype = Activation\n" SIDE("one")               \
        SIDE("two") "[layer sum]\ntype = ElementWise\ninputs = " inputs "\n" more        \
                    "[layer out]\ntype = Convolution\nfilters = 2\nkernel = "            \
                    "1x1\nweights = w\n"
#define ACTIVATION(kind) "[layer act]\ntype = Activation\nkind = " kind "\n"

Test(scheme, of_two_addends_the_one_that_is_made_last_stays)
{
    static const struct {
        const char *text;
        bool sums; /* the sum reads int8 */
    } cases[] = {{BLOCK("one, two", ""), true},
                 {BLOCK("two, one", ""), true},
                 {BLOCK("one, two", ACTIVATION("relu")), true},
                 {BLOCK("one, two", ACTIVATION("sigmoid")), false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        memset(&b, 0, sizeof b);
        open_text(&b, cases[i].text, NULL);
        cr_expect_eq(b.scheme.tensors[tensor(b.net, "one")], cases[i].sums, "%zu", i);
        cr_expect(!b.scheme.tensors[tensor(b.net, "two")], "%zu", i);
        cr_expect_eq(b.scheme.reads[layer(b.net, "sum") - b.net->layers], cases[i].sums);
        close_bench(&b);
    }
}

#define STEM(more)                                                                       \
    "[network]\nformat = 1\noutputs = out\n[input x]\nshape = 1 x 3 x 9 x 7\n"           \
    "[weights w]\nrandom = 5\n[layer in]\ntype = Convolution\nfilters = 4\n"             \
    "kernel = 1x1\nweights = w\n" ACTIVATION("relu") more                                \
        "[layer out]\ntype = Convolution\nfilters = 2\nkernel = 1x1\nweights = w\n"
#define POOL(kind)                                                                       \
    "[layer pool]\ntype = Pooling\nkernel = 2\nstride = 2\nkind = " kind "\n"

/* What a kept layer makes is rounded behind the maxima, of which there are fewer. */
Test(scheme, maxima_of_what_a_kept_layer_makes_are_of_floats)
{
    static const struct {
        const char *text;
        bool keep, reads; /* the first layer is kept; the pooling reads int8 */
    } cases[] = {{STEM(POOL("max")), false, true},
                 {STEM(POOL("max")), true, false},
                 {STEM("[layer more]\ntype = Softmax\n" POOL("max")), true, true},
                 {STEM(POOL("average")), false, true},
                 {STEM(POOL("average")), true, false},
                 {STEM(POOL("lp")), false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        memset(&b, 0, sizeof b);
        open_text(&b, cases[i].text, NULL);
        struct scheme s;
        strata_error err = {0};
        bool *keep = calloc(b.net->n_layers, sizeof *keep);
        keep[layer(b.net, "in") - b.net->layers] = cases[i].keep;
        ok(scheme_make(&s, b.net, &quant_int8, keep, NULL, &err), &err);
        const struct network_layer *pool = layer(b.net, "pool");
        cr_expect_eq(s.reads[pool - b.net->layers], cases[i].reads, "%zu", i);
        cr_expect_eq(s.tensors[pool->inputs[0]], cases[i].reads, "%zu", i);
        cr_expect(s.tensors[tensor(b.net, "pool")], "%zu", i);
        scheme_free(&s);
        free(keep);
        close_bench(&b);
    }
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
    static const struct weight_form few = {8, 0};
    struct bench b;
    struct scheme s;
    strata_error err = {0};
    open_bench(&b);
    bool *keep = calloc(b.net->n_layers, sizeof *keep);
    keep[layer(b.net, "conv1") - b.net->layers] = true;
    keep[layer(b.net, "up") - b.net->layers] = true;
    ok(scheme_make(&s, b.net, &quant_int8, keep, NULL, &err), &err);
    cr_expect_eq(s.n_layers, 5);
    cr_expect(!s.tensors[tensor(b.net, "x")] && !s.tensors[tensor(b.net, "sum")]);
    cr_expect(!s.reads[layer(b.net, "up") - b.net->layers]);
    scheme_free(&s);
    ok(scheme_make(&s, b.net, &quant_int8, NULL, &few, &err), &err);
    cr_expect(s.n_layers == 1 && s.n_tensors == 0, "MatrixMultiply's weights alone");
    scheme_free(&s);
    free(keep);
    close_bench(&b);
}

Test(scheme, products_of_matrices_alone_become_e4m3)
{
    struct bench b;
    struct scheme s;
    strata_error err = {0};
    open_bench(&b);
    ok(scheme_make(&s, b.net, &quant_e4m3, NULL, NULL, &err), &err);
    cr_expect(s.n_layers == 1 && s.computes[layer(b.net, "last") - b.net->layers]);
    cr_expect(s.n_tensors == 2 && s.tensors[tensor(b.net, "flat")] &&
              s.tensors[tensor(b.net, "dense")]); /* a Shuffle carries it */
    scheme_free(&s);
    close_bench(&b);
}

#define ATTENDS(more)                                                                    \
    "[network]\nformat = 1\noutputs = out\n[input x]\nshape = 1 x 7 x 27\n"              \
    "[weights w]\nrandom = 5\n[layer qkv]\ntype = MatrixMultiply\nunits = 36\nb = w\n"   \
    "[layer att]\ntype = Attention\nheads = 3\n" more                                    \
    "[layer out]\ntype = MatrixMultiply\nunits = 4\ninputs = att\nb = w\n"

Test(scheme, what_an_attention_reads_becomes_e4m3)
{
    static const struct {
        const char *text;
        const struct quant_type *type;
        bool keep, takes;
    } cases[] = {{ATTENDS(""), &quant_e4m3, false, true},
                 {ATTENDS(""), &quant_e4m3, true, false},
                 {ATTENDS(""), &quant_int8, false, false},
                 {ATTENDS("present = yes\n"), &quant_e4m3, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        struct scheme s;
        strata_error err = {0};
        memset(&b, 0, sizeof b);
        open_text(&b, cases[i].text, NULL);
        bool *keep = calloc(b.net->n_layers, sizeof *keep);
        const struct network_layer *att = layer(b.net, "att");
        keep[att - b.net->layers] = cases[i].keep;
        ok(scheme_make(&s, b.net, cases[i].type, keep, NULL, &err), &err);
        cr_expect_eq(s.reads[att - b.net->layers], cases[i].takes, "%zu", i);
        cr_expect_eq(s.tensors[tensor(b.net, "qkv")], cases[i].takes, "%zu", i);
        cr_expect(s.tensors[tensor(b.net, "att")], "%zu", i);
        scheme_free(&s);
        free(keep);
        close_bench(&b);
    }
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

static void expect_nearest(const struct bench *b, const char *name,
                           const struct quant_type *type)
{
    const struct network_layer *l = layer(b->net, name);
    const struct network_weight *w = &l->weights[0];
    struct int8_weight q;
    strata_error err = {0};
    ok(int8_weight_make(&q, l, scheme_computes(b->net, l), type, NULL, &err), &err);
    float *from = malloc((size_t)q.count * sizeof *from);
    double *most = calloc((size_t)q.channels, sizeof *most), noise = 0;
    ok(network_weight_load(w, from, &err), &err);
    for (int64_t i = 0; i < q.count; i++) {
        const int64_t c = channel(name, w->dims, i);
        cr_assert(c < q.channels, "%s", name);
        const double scale = (double)q.scales[c], x = (double)from[i] / scale;
        const double got = type == &quant_int8
                               ? (double)(int8_t)q.values[i]
                               : (double)strata_float_of_e4m3(q.values[i]);
        /* Of four bits, and of 2^-9 below 2^-6. */
        const double half =
            type == &quant_int8 ? 0.5 : fmax(exp2(floor(log2(fabs(x))) - 4), 0x1p-10);
        cr_expect(fabs(x - got) <= half * 1.000001, "%s: %s %lld", name, type->name,
                  (long long)i);
        most[c] = fmax(most[c], fabs(got));
        noise += (x - got) * (x - got) * scale * scale;
    }
    for (int64_t c = 0; c < q.channels; c++)
        cr_expect_eq(most[c], type->steps, "%s: channel %lld", name, (long long)c);
    cr_expect_float_eq(q.noise, noise, noise * 1e-9);
    free(from);
    free(most);
    int8_weight_free(&q);
}

Test(weights, are_within_half_a_step_of_each_channels_scale)
{
    static const char *const names[] = {"conv1", "conv2", "up", "dense", "last"};
    struct bench b;
    open_bench(&b);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        expect_nearest(&b, names[k], &quant_int8);
        expect_nearest(&b, names[k], &quant_e4m3);
    }
    close_bench(&b);
}

/* ---- 4 bits ----------------------------------------------------------------------- */

/* What a value of a packed matrix stands for, by what docs/ini.md says of it. */
static double unpacked(const struct int8_weight *q, const uint8_t *bytes,
                       const int64_t *dims, bool turned, int64_t k, int64_t n)
{
    const uint8_t byte = bytes[turned ? n * dims[1] + k / 2 : k / 2 * dims[1] + n];
    const int64_t g = k / q->group;
    const double scale =
        (double)q->scales[turned ? n * q->groups + g : g * q->channels + n];
    return ((byte >> k % 2 * 4 & 15) - 8) * scale;
}

/* Squares left by rounding with the largest magnitude at 7 steps. */
static double plain_noise(const float *from, int64_t n, int64_t step)
{
    double most = 0, noise = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)from[i * step]));
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)from[i * step], s = most / 7;
        noise += (x - nearbyint(x / s) * s) * (x - nearbyint(x / s) * s);
    }
    return noise;
}

static void expect_nibbles(const char *turned, int depth, int columns, int group)
{
    static const char text[] = "[network]\nformat = 1\noutputs = y\n[input x]\n"
                               "shape = 1 x %d\n[weights w]\nrandom = %u\n[layer y]\n"
                               "type = MatrixMultiply\nunits = %d\nb = w\n"
                               "transpose_b = %s\n";
    const struct weight_form form = {4, group};
    const bool n_by_k = *turned == 'y';
    struct bench b;
    struct int8_weight q;
    strata_network *net;
    strata_error err = {0};
    int64_t dims[2];
    char whole[512];
    open_bench(&b);
    snprintf(whole, sizeof whole, text, depth, (unsigned)rand(), columns, turned);
    const struct network_memory memory = {.text = whole, .text_size = strlen(whole)};
    ok(network_parse(&net, &memory, "a product", b.registry, &err), &err);
    const struct network_layer *l = &net->layers[0];
    ok(int8_weight_make(&q, l, scheme_computes(net, l), &quant_int8, &form, &err), &err);
    uint8_t *bytes = int8_weight_pack(&q, dims, &err);
    float *from = malloc((size_t)q.count * sizeof *from);
    ok(network_weight_load(&l->weights[0], from, &err), &err);
    double noise = 0, plain = 0;
    for (int64_t n = 0; n < columns; n++)
        for (int64_t k = 0; k < depth; k++) {
            const int64_t step = n_by_k ? 1 : columns;
            const int64_t at = n_by_k ? n * depth + k : k * columns + n;
            const int64_t rest = depth - k < group ? depth - k : group;
            const double off = (double)from[at] - unpacked(&q, bytes, dims, n_by_k, k, n);
            noise += off * off;
            if (k % group == 0)
                plain += plain_noise(from + at, rest, step);
        }
    cr_expect_float_eq(q.noise, noise, 1e-6 * noise + q.signal * 1e-12, "%g, not %g",
                       q.noise, noise);
    cr_expect_leq(noise, plain * 1.0001 + q.signal * 1e-12,
                  "%d x %d by %d: %g, plain rounding has %g", depth, columns, group,
                  noise, plain);
    free(from);
    free(bytes);
    int8_weight_free(&q);
    strata_network_destroy(net);
    close_bench(&b);
}

Test(weights, of_4_bits_lose_less_than_by_plain_rounding)
{
    srand((unsigned)getpid());
    expect_nibbles("yes", 256, 12, 128);
    expect_nibbles("no", 256, 12, 128);
    expect_nibbles("yes", 45, 7, 32);
    expect_nibbles("no", 45, 7, 8);
    expect_nibbles("no", 1, 3, 128);
    expect_nibbles("yes", 33, 5, 1);
}
