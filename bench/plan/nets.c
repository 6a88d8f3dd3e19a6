/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/plan/nets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static double uniform(double low, double high)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return low + (high - low) * (double)(state >> 11) / 9007199254740992.0;
}

/* ---- building blocks --------------------------------------------------------------- */

/* An operation over inputs[]; its output has channels x side x side elements. */
static int add(struct net *n, int n_in, const int *inputs, int channels, int side)
{
    int id = (int)n->p.n_ops++;
    int *in = n->ports + n->n_ports;
    for (int i = 0; i < n_in; i++)
        in[i] = inputs[i];
    n->n_ports += (size_t)n_in;
    n->out[id] = id;
    n->bytes[id] = 4.0 * channels * side * side;
    n->shape[id] = channels * 1024 + side;
    n->ops[id] = (struct plan_op){
        .name = "op", .n_in = n_in, .n_out = 1, .in = in, .out = &n->out[id]};
    return id;
}

static int op(struct net *n, int x, int channels, int side)
{
    return add(n, 1, &x, channels, side);
}

static int join(struct net *n, int a, int b, int channels, int side)
{
    const int both[2] = {a, b};
    return add(n, 2, both, channels, side);
}

static int stem(struct net *n, int channels, int side)
{
    return op(n, op(n, add(n, 0, NULL, 3, 224), channels, 112), channels, side);
}

static void head(struct net *n, int x)
{
    x = op(n, op(n, op(n, x, 1024, 1), 1000, 1), 1000, 1);
    op(n, x, 1000, 1);
}

static int bottleneck(struct net *n, int x, int channels, int side, bool project)
{
    int y = op(n, x, channels / 4, side);
    y = op(n, y, channels / 4, side);
    y = op(n, y, channels, side);
    return join(n, y, project ? op(n, x, channels, side) : x, channels, side);
}

static int resnet_body(struct net *n, int x, const int blocks[4], int *taps)
{
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < blocks[s]; i++)
            x = bottleneck(n, x, 256 << s, 56 >> s, i == 0);
        if (taps)
            taps[s] = x;
    }
    return x;
}

static void resnet50(struct net *n)
{
    head(n, resnet_body(n, stem(n, 64, 56), (const int[]){3, 4, 6, 3}, NULL));
}

static void resnet152(struct net *n)
{
    head(n, resnet_body(n, stem(n, 64, 56), (const int[]){3, 8, 36, 3}, NULL));
}

static int inception(struct net *n, int x, int branches, int channels, int side)
{
    int outs[8];
    for (int b = 0; b < branches; b++) {
        outs[b] = x;
        for (int i = 0; i <= b; i++)
            outs[b] = op(n, outs[b], channels / branches, side);
    }
    return add(n, branches, outs, channels, side);
}

static void googlenet(struct net *n)
{
    int x = stem(n, 192, 28);
    for (int i = 0; i < 9; i++)
        x = inception(n, x, 3, 256 + 64 * i, i < 2 ? 28 : i < 7 ? 14 : 7);
    head(n, x);
}

static void inception_v3(struct net *n)
{
    int x = stem(n, 192, 35);
    for (int i = 0; i < 11; i++)
        x = inception(n, x, 4,
                      i < 4   ? 288
                      : i < 9 ? 768
                              : 2048,
                      i < 4   ? 35
                      : i < 9 ? 17
                              : 8);
    head(n, x);
}

static void unet(struct net *n)
{
    int skips[4], x = add(n, 0, NULL, 3, 256);
    for (int s = 0; s < 4; s++) {
        skips[s] = op(n, op(n, x, 64 << s, 256 >> s), 64 << s, 256 >> s);
        x = op(n, skips[s], 64 << s, 128 >> s);
    }
    x = op(n, op(n, x, 1024, 16), 1024, 16);
    for (int s = 3; s >= 0; s--) {
        x = join(n, op(n, x, 64 << s, 256 >> s), skips[s], 128 << s, 256 >> s);
        x = op(n, op(n, x, 64 << s, 256 >> s), 64 << s, 256 >> s);
    }
    op(n, x, 2, 256);
}

/* x[i][j] = conv(concat(x[i][0..j-1], up(x[i+1][j-1]))) */
static void unet_plus(struct net *n)
{
    int x[5][5], in = add(n, 0, NULL, 3, 256);
    for (int i = 0; i < 5; i++) {
        int from = i ? op(n, x[i - 1][0], 32 << i, 256 >> i) : in;
        x[i][0] = op(n, op(n, from, 32 << i, 256 >> i), 32 << i, 256 >> i);
    }
    for (int j = 1; j < 5; j++)
        for (int i = 0; i + j < 5; i++) {
            int parts[6];
            for (int k = 0; k < j; k++)
                parts[k] = x[i][k];
            parts[j] = op(n, x[i + 1][j - 1], 32 << i, 256 >> i);
            x[i][j] = op(n, add(n, j + 1, parts, (j + 1) * 32 << i, 256 >> i), 32 << i,
                         256 >> i);
        }
    op(n, x[0][4], 2, 256);
}

static void dense(struct net *n, const int blocks[4], bool running)
{
    int x = stem(n, 64, 56), channels = 64;
    for (int b = 0; b < 4; b++) {
        int parts[NET_MAX_PORTS] = {x}, side = 56 >> b;
        for (int i = 1; i <= blocks[b]; i++) {
            int y = op(n, op(n, x, 128, side), 32, side);
            parts[i] = y;
            channels += 32;
            x = running ? join(n, x, y, channels, side)
                        : add(n, i + 1, parts, channels, side);
            x = i < blocks[b] ? x : op(n, x, channels, side);
        }
        channels /= 2;
        x = b < 3 ? op(n, op(n, x, channels, side), channels, side / 2) : x;
    }
    head(n, x);
}

static void densenet121(struct net *n)
{
    dense(n, (const int[]){6, 12, 24, 16}, false);
}

static void densenet121_running(struct net *n)
{
    dense(n, (const int[]){6, 12, 24, 16}, true);
}

static void densenet201(struct net *n)
{
    dense(n, (const int[]){6, 12, 48, 32}, false);
}

static void pyramid(struct net *n)
{
    int taps[4], lateral[4];
    resnet_body(n, stem(n, 64, 56), (const int[]){3, 4, 6, 3}, taps);
    for (int s = 3; s >= 0; s--) {
        lateral[s] = op(n, taps[s], 256, 56 >> s);
        if (s < 3)
            lateral[s] =
                join(n, lateral[s], op(n, lateral[s + 1], 256, 56 >> s), 256, 56 >> s);
    }
    for (int s = 0; s < 4; s++) {
        int y = op(n, lateral[s], 256, 56 >> s);
        if (s > 0)
            y = join(n, y, op(n, lateral[s - 1], 256, 56 >> s), 256, 56 >> s);
        lateral[s] = y;
        op(n, op(n, y, 256, 56 >> s), 84, 56 >> s);
        op(n, op(n, y, 256, 56 >> s), 4, 56 >> s);
    }
}

/* Cells of five joins over two inputs, each also read two cells on. */
static void nasnet(struct net *n)
{
    int before = stem(n, 64, 28), last = op(n, before, 64, 28);
    for (int c = 0; c < 18; c++) {
        int side = c < 6    ? 28
                   : c < 12 ? 14
                            : 7,
            channels = 64 << c / 6, nodes[7], parts[5];
        nodes[0] = op(n, before, channels, side);
        nodes[1] = op(n, last, channels, side);
        for (int i = 0; i < 5; i++) {
            int a = (int)uniform(0, 2 + i), b = (int)uniform(0, 2 + i);
            parts[i] = nodes[2 + i] =
                join(n, op(n, nodes[a], channels, side), op(n, nodes[b], channels, side),
                     channels, side);
        }
        before = last;
        last = add(n, 5, parts, 5 * channels, side);
    }
    head(n, last);
}

const struct net_builder net_builders[] = {
    {"ResNet-50", resnet50},
    {"ResNet-152", resnet152},
    {"GoogLeNet", googlenet},
    {"Inception-v3-like", inception_v3},
    {"U-Net", unet},
    {"ResNet-50 FPN/PAN", pyramid},
    {"U-Net++", unet_plus},
    {"DenseNet-121 running", densenet121_running},
    {"DenseNet-121 n-ary", densenet121},
    {"DenseNet-201 n-ary", densenet201},
    {"NASNet-like", nasnet},
};
const int n_net_builders = (int)(sizeof net_builders / sizeof net_builders[0]);

/* ---- costs ------------------------------------------------------------------------- */

#define BANDWIDTH 600e9  /* bytes/s */
#define LAUNCH_NS 2500.0 /* of a reformat */

static double label_bytes(int label)
{
    return label % 2 ? 0.5 : 1.0; /* of fp32: odd labels are fp16 */
}

static int64_t units(double ns)
{
    return (int64_t)(ns * PLAN_UNIT_PER_NS);
}

/* Every operation reads and writes one format, or sometimes turns one into another. */
static bool draw_choices(struct net *n, struct plan_op *o, double bytes, double support)
{
    int labels = n->p.n_labels, at = 0;
    bool io = o->n_in == 0;
    o->choices = calloc((size_t)labels * 2, sizeof *o->choices);
    for (int l = 0; o->choices && l < labels; l++)
        for (int mixed = 0; mixed < 2; mixed++) {
            int to = mixed ? (l + 1 + (int)uniform(0, labels - 1)) % labels : l;
            bool any = mixed ? uniform(0, 1) < 0.15 : uniform(0, 1) < support;
            if (!(any || (l == 0 && !mixed)) || (io && (l || mixed)))
                continue;
            double ns = (bytes * (label_bytes(l) + label_bytes(to))) / BANDWIDTH * 1e9;
            ns = LAUNCH_NS + ns * uniform(1, 6) / uniform(0.3, 0.95);
            struct plan_choice *c = &o->choices[at++];
            memset(c->in, l, sizeof c->in);
            memset(c->out, to, sizeof c->out);
            c->cost = units(ns);
        }
    o->n_choices = (size_t)at;
    return o->choices;
}

static bool draw_conversions(struct net *n, int tensor)
{
    struct plan_tensor *t = &n->tensors[tensor];
    int labels = n->p.n_labels;
    for (int i = 0; i < tensor; i++)
        if (n->shape[i] == n->shape[tensor]) {
            t->conversion = n->tensors[i].conversion;
            return true;
        }
    int64_t *m = calloc((size_t)(labels * labels), sizeof *m);
    n->matrices[tensor] = m;
    t->conversion = m;
    for (int e = 0; m && e < labels * labels; e++) {
        double moved = label_bytes(e / labels) + label_bytes(e % labels);
        double ns = n->bytes[tensor] * moved / BANDWIDTH * 1e9 / uniform(0.35, 0.9);
        m[e] = e / labels == e % labels ? 0 : units(LAUNCH_NS + ns);
    }
    return m;
}

static bool link_readers(struct net *n)
{
    struct plan_reader *next = n->readers = calloc(n->n_ports, sizeof *next);
    for (size_t i = 0; n->readers && i < n->p.n_tensors; i++)
        for (size_t o = 0; o < n->p.n_ops; o++)
            for (int k = 0; k < n->ops[o].n_in; k++)
                if (n->ops[o].in[k] == (int)i) {
                    struct plan_tensor *t = &n->tensors[i];
                    t->readers = t->readers ? t->readers : next;
                    t->readers[t->n_readers++] = (struct plan_reader){(int)o, k};
                    next++;
                }
    return n->readers;
}

bool net_make(struct net *n, const struct net_builder *builder, int labels,
              double support, uint64_t seed)
{
    memset(n, 0, sizeof *n);
    state = seed * 2654435761u + 1;
    n->ports = calloc((size_t)NET_MAX_OPS * NET_MAX_PORTS, sizeof *n->ports);
    if (!n->ports)
        return false;
    n->p.ops = n->ops;
    n->p.tensors = n->tensors;
    n->p.n_labels = labels;
    for (int l = 0; l < labels; l++)
        n->p.labels[l] = (struct plan_label){.format = l, .precision = 24};
    builder->build(n);
    n->p.n_tensors = n->p.n_ops;
    bool fine = true;
    for (size_t i = 0; i < n->p.n_ops && fine; i++) {
        n->tensors[i].name = "tensor";
        n->tensors[i].producer = (int)i;
        fine = draw_conversions(n, (int)i) &&
               draw_choices(n, &n->ops[i], n->bytes[i], support);
    }
    return fine && link_readers(n);
}

void net_free(struct net *n)
{
    for (size_t i = 0; i < n->p.n_ops; i++) {
        free(n->ops[i].choices);
        free(n->matrices[i]);
    }
    free(n->ports);
    free(n->readers);
}
