/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws a network layer by layer, each on a tensor there is; sometimes a block of layers
 * that the planner may run as one.
 */
#include "tests/engine/network_draw.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <strata/strata.h>

/* By kind of device: what every layer can write there. */
static const char *const pins_fp32[STRATA_DEVICE_KINDS][4] = {
    {"fp32:nchw", "fp32:nhwc", "fp32:nc/8hw8", "fp32:nc/16hw16"},
    {"fp32:nchw", "fp32:nchw", "fp32:nchw", "fp32:nchw"}};
static const char *const pins_fp16[STRATA_DEVICE_KINDS][4] = {
    {"fp16:nchw", "fp16:nhwc", "fp16:nc/2hw2", "fp16:nhwc8"},
    {"fp16:nchw", "fp16:nhwc8", "fp16:nc/2hw2", "fp16:nhwc8"}};
static const char *const kinds[] = {
    "relu",       "leaky_relu", "relu6", "sigmoid", "tanh",       "elu",  "selu",
    "softplus",   "softsign",   "gelu",  "silu",    "mish",       "clip", "hard_sigmoid",
    "hard_swish", "gelu_tanh",  "swish", "celu",    "scaled_tanh"}; /* none jumps */

enum { LARGEST_BLOCK = 9 };

int sketch_roll(struct sketch *s, int sides)
{
    s->state = s->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((s->state >> 33) % (unsigned)sides);
}

/* Mostly the latest, for chains; else any, for branches. */
static int any(struct sketch *s)
{
    return sketch_roll(s, 3) ? s->n - 1 : sketch_roll(s, s->n);
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
    int start = sketch_roll(s, s->n);
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
    const char *kind = kinds[sketch_roll(s, (int)(sizeof kinds / sizeof *kinds))];
    keys(n, "type = Activation\ninputs = n%d\nkind = %s\n", in, kind);
    if (!strcmp(kind, "clip"))
        keys(n, "alpha = -0.25\nbeta = 0.75\n");
}

static void unary(struct sketch *s, struct node *n, int in)
{
    /* None that makes a rounding of a large value a large part of its own: no sine. */
    static const char *const operations[] = {"abs",  "neg",  "asinh",
                                             "atan", "tanh", "erf"};
    keys(n, "type = Unary\ninputs = n%d\nop = %s\n", in, operations[sketch_roll(s, 6)]);
}

static void parametric_relu(struct sketch *s, struct node *n, int in)
{
    (void)s;
    keys(n, "type = ParametricReLU\ninputs = n%d\nslope = w\n", in);
}

static void convolution(struct sketch *s, struct node *n, int in)
{
    int filters = 1 + sketch_roll(s, 20), kernel = sketch_roll(s, 2) ? 3 : 1;
    int groups = sketch_roll(s, 4) == 0 ? (int)n->dims[1] : 1;
    if (groups > 1)
        filters = groups * (1 + sketch_roll(s, 2));
    keys(n, "type = Convolution\ninputs = n%d\nfilters = %d\nkernel = %d\npad = %d\n", in,
         filters, kernel, kernel / 2);
    keys(n, "groups = %d\nweight = w\n%s", groups, sketch_roll(s, 2) ? "bias = w\n" : "");
    n->dims[1] = filters;
}

static void pooling(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Pooling\ninputs = n%d\nkind = %s\nkernel = 3\npad = 1\n", in,
         sketch_roll(s, 2) ? "max" : "average");
}

static void scale(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Scale\ninputs = n%d\nscale = 0.%d\nshift = -0.%d\n", in,
         1 + sketch_roll(s, 9), sketch_roll(s, 9));
}

/* Of equal dims, or one of them with a single channel. */
static void element_wise(struct sketch *s, struct node *n, int in)
{
    static const char *const operations[] = {"sum", "sub", "product", "max", "min"};
    int other = partner(s, in, sketch_roll(s, 2) ? 1 : -1);
    int64_t channels = s->nodes[other].dims[1];
    if (channels != n->dims[1] && channels != 1 && n->dims[1] != 1)
        other = in;
    else if (channels > n->dims[1])
        n->dims[1] = channels;
    keys(n, "type = ElementWise\ninputs = n%d, n%d\nop = %s\n", in, other,
         operations[sketch_roll(s, 5)]);
}

static void concatenation(struct sketch *s, struct node *n, int in)
{
    int other = partner(s, in, 1);
    keys(n, "type = Concatenation\ninputs = n%d, n%d\naxis = 1\n", in, other);
    n->dims[1] += s->nodes[other].dims[1];
}

static void slice(struct sketch *s, struct node *n, int in)
{
    int begin = sketch_roll(s, (int)n->dims[1]),
        end = begin + 1 + sketch_roll(s, (int)n->dims[1] - begin);
    keys(n, "type = Slice\ninputs = n%d\naxes = 1\nbegin = %d\nend = %d\n", in, begin,
         end);
    n->dims[1] = end - begin;
}

/* Of an even number of channels; else a copy. */
static void gated(struct sketch *s, struct node *n, int in)
{
    const bool even = n->dims[1] % 2 == 0;
    keys(n, "type = %s\ninputs = n%d\n", even ? "Gated" : "Identity", in);
    if (even)
        keys(n, "axis = 1\nkind = %s\n", sketch_roll(s, 2) ? "silu" : "gelu");
    n->dims[1] /= 1 + even;
}

static void softmax(struct sketch *s, struct node *n, int in)
{
    keys(n, "type = Softmax\ninputs = n%d\naxis = %d\n", in, sketch_roll(s, n->rank));
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
    int a = n->rank - 1, b = 1 + sketch_roll(s, n->rank - 1);
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
         sketch_roll(s, 2));
    n->dims[n->rank - 1] += 1 + (strstr(n->text, "end = 1") != NULL);
}

static const struct {
    maker make;
    int weight;
} makers[] = {{activation, 5},   {convolution, 4},   {pooling, 2}, {scale, 2},
              {element_wise, 4}, {concatenation, 3}, {slice, 2},   {softmax, 1},
              {identity, 3},     {constant, 1},      {shuffle, 1}, {reshape, 1},
              {padding, 1},      {unary, 2},         {gated, 2},   {parametric_relu, 1}};

static maker choose_maker(struct sketch *s)
{
    int total = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        total += makers[i].weight;
    int left = sketch_roll(s, total);
    for (size_t i = 0;; i++)
        if ((left -= makers[i].weight) < 0)
            return makers[i].make;
}

/* ---- blocks ------------------------------------------------------------------------ */

static struct node begin(const struct sketch *s, int in)
{
    struct node n = s->nodes[in];
    n.text[0] = n.pin[0] = '\0';
    return n;
}

static int put(struct sketch *s, const struct node *n)
{
    s->nodes[s->n] = *n;
    return s->n++;
}

static int put_made(struct sketch *s, maker make, int in)
{
    struct node n = begin(s, in);
    make(s, &n, in);
    return put(s, &n);
}

static int put_convolution(struct sketch *s, int in, int filters, int kernel, bool apart)
{
    struct node n = begin(s, in);
    keys(&n, "type = Convolution\ninputs = n%d\nfilters = %d\nkernel = %d\npad = %d\n",
         in, filters, kernel, kernel / 2);
    keys(&n, "groups = %d\nweight = w\nbias = w\n", apart ? filters : 1);
    n.dims[1] = filters;
    return put(s, &n);
}

static int put_pair(struct sketch *s, const char *what, int a, int b)
{
    struct node n = begin(s, a);
    keys(&n, "type = %s\ninputs = n%d, n%d\n", what, a, b);
    if (strstr(what, "Concatenation"))
        n.dims[1] += s->nodes[b].dims[1];
    return put(s, &n);
}

/* A bottleneck, or an inverted residual; what is added may be a shortcut. */
static void residual(struct sketch *s, int in)
{
    const bool apart = sketch_roll(s, 2);
    const int between = 1 + sketch_roll(s, 20), most = (int)s->nodes[in].dims[1];
    int x = put_made(s, activation, put_convolution(s, in, between, 1, false));
    x = put_made(s, activation, put_convolution(s, x, between, 3, apart));
    x = put_convolution(s, x, most, 1, false);
    const int added = sketch_roll(s, 3) ? in : put_convolution(s, in, most, 1, false);
    if (sketch_roll(s, 4))
        x = sketch_roll(s, 2) ? put_pair(s, "ElementWise", x, added)
                              : put_pair(s, "ElementWise", added, x);
    if (sketch_roll(s, 2))
        put_made(s, activation, x);
}

/* Siblings, of which one goes on, within a concatenation or two. */
static void module(struct sketch *s, int in)
{
    const int a = put_convolution(s, in, 8 * (1 + sketch_roll(s, 2)), 1, false),
              b = put_convolution(s, in, 1 + sketch_roll(s, 16), 1, false),
              c = put_convolution(s, b, 1 + sketch_roll(s, 9), 3, false),
              d = sketch_roll(s, 2) ? put_made(s, slice, a) : a,
              e = sketch_roll(s, 2) ? put_pair(s, "Concatenation", a, c)
                                    : put_pair(s, "Concatenation", c, a);
    if (sketch_roll(s, 2))
        put_pair(s, "Concatenation", e, sketch_roll(s, 2) ? b : d);
    else if (sketch_roll(s, 2))
        put_pair(s, "Concatenation", b, d);
}

/* Ranges of one tensor, each its own way, side by side again. */
static void head(struct sketch *s, int in)
{
    static const maker ways[] = {activation, unary, scale, parametric_relu, identity};
    const int step = sketch_roll(s, 3) ? 8 : 4;
    const int x = put_convolution(s, in, 3 * step, 1, false);
    int part[3];
    for (int i = 0; i < 3; i++) {
        struct node n = begin(s, x);
        keys(&n, "type = Slice\ninputs = n%d\naxes = 1\nbegin = %d\nend = %d\n", x,
             i * step, (i + 1) * step);
        n.dims[1] = step;
        part[i] = put_made(s, ways[sketch_roll(s, 5)], put(s, &n));
    }
    put_pair(s, "Concatenation", put_pair(s, "Concatenation", part[0], part[2]), part[1]);
}

static void mean(struct sketch *s, struct node *n, int in)
{
    static const char *const axes[] = {"2", "2, 3", "2, 3, 4"};
    (void)s;
    keys(n, "type = Reduce\ninputs = n%d\nop = mean\naxes = %s\n", in, axes[n->rank - 3]);
    for (int i = 2; i < n->rank; i++)
        n->dims[i] = 1;
}

/* Squeeze-and-excite. */
static void squeeze(struct sketch *s, int in)
{
    const int channels = (int)s->nodes[in].dims[1];
    int x = put_convolution(s, put_made(s, mean, in), 1 + sketch_roll(s, 8), 1, false);
    x = put_convolution(s, put_made(s, activation, x), channels, 1, false);
    put_pair(s, "ElementWise\nop = product", in, put_made(s, activation, x));
}

static void add_block(struct sketch *s)
{
    static void (*const blocks[])(struct sketch *, int) = {residual, residual, module,
                                                           module,   squeeze,  head};
    const int in = any(s);
    if (s->n + LARGEST_BLOCK <= MAX_NODES)
        blocks[sketch_roll(s, 6)](s, in);
}

static void add_layer(struct sketch *s)
{
    const int in = any(s);
    struct node n = begin(s, in);
    maker make = choose_maker(s);
    if ((make == concatenation || make == shuffle || make == reshape ||
         make == padding) &&
        max_dim(&n) > 40)
        make = identity;
    make(s, &n, in);
    if (sketch_roll(s, 3) == 0 && make != gated) /* vectors have no halves */
        snprintf(n.pin, sizeof n.pin, "format = %s\n",
                 (s->half && sketch_roll(s, 2)
                      ? pins_fp16
                      : pins_fp32)[s->device][sketch_roll(s, 4)]);
    put(s, &n);
}

void sketch_draw(struct sketch *s, unsigned seed, int device)
{
    *s = (struct sketch){.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1,
                         .device = device};
    int layers = 2 + sketch_roll(s, 12), rank = 3 + sketch_roll(s, 3);
    s->half = sketch_roll(s, 3) == 0;
    for (int i = 0; i < 2; i++) {
        struct node *n = &s->nodes[s->n++];
        *n = (struct node){.rank = rank, .dims = {2, 1, 5, 4, 3}};
        n->dims[0] = i ? s->nodes[0].dims[0] : 1 + sketch_roll(s, 3);
        n->dims[1] = sketch_roll(s, 3) ? 1 + sketch_roll(s, 18) : 1;
        if (sketch_roll(s, 3) == 0)
            snprintf(n->pin, sizeof n->pin, "format = %s\n",
                     pins_fp32[s->device][sketch_roll(s, 4)]);
    }
    for (int i = 0; i < layers && s->n < MAX_NODES; i++)
        if (sketch_roll(s, 8))
            add_layer(s);
        else
            add_block(s);
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

void sketch_write(struct sketch *s, const char *path, bool plain)
{
    FILE *f = fopen(path, "w");
    cr_assert_neq(f, NULL);
    fprintf(f, "[network]\nformat = 1\noutputs = n%d", s->n - 1);
    for (int i = 2; i < s->n - 1; i++)
        if (plain || !is_read(s, i) || sketch_roll(s, 6) == 0)
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
