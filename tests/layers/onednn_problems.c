/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain loops in FP64, one output element at a time.
 */
#include "tests/layers/onednn_problems.h"

#include <math.h>
#include <string.h>

/* Begin and end pads of dim d of `dims`, from a list of 1, dims or 2*dims values. */
static int64_t pad_begin(strata_ints pad, int d)
{
    return pad.n == 0 ? 0 : pad.v[pad.n == 1 ? 0 : d];
}

static int64_t pad_end(strata_ints pad, int dims, int d)
{
    return pad.n == 2 * dims ? pad.v[dims + d] : pad_begin(pad, d);
}

static int64_t list_at(strata_ints list, int d)
{
    return list.n == 0 ? 1 : list.v[list.n == 1 ? 0 : d];
}

/* One output element: sum over channels of the group and taps inside the input. */
static void convolve_at(struct problem *p, const struct convolution_case *c, int64_t at)
{
    const int dims = p->rank - 2;
    int64_t index[5] = {0}, group_c = p->weight_dims[1], rest = at, taps;
    double sum = 0, magnitude = 0;

    for (int d = p->rank - 1; d >= 0; d--)
        index[d] = rest % p->out_dims[d], rest /= p->out_dims[d];
    taps = trial_product(p->weight_dims + 2, dims);
    for (int64_t ic = 0; ic < group_c; ic++)
        for (int64_t tap = 0; tap < taps; tap++) {
            int64_t group = index[1] / (c->k / c->params.groups);
            int64_t source = index[0] * c->c + group * group_c + ic, left = tap;
            int64_t position[3] = {0};
            bool inside = true;
            for (int d = dims - 1; d >= 0; d--) {
                position[d] = index[2 + d] * list_at(c->params.stride, d) -
                              pad_begin(c->params.pad, d) +
                              left % c->kernel[d] * list_at(c->params.dilation, d);
                left /= c->kernel[d];
                inside &= position[d] >= 0 && position[d] < c->in[d];
            }
            for (int d = 0; d < dims; d++)
                source = source * c->in[d] + position[d];
            if (!inside)
                continue;
            double term = (double)p->input[source] *
                          p->weight[(index[1] * group_c + ic) * taps + tap];
            sum += term, magnitude += fabs(term);
        }
    p->expected[at] = sum + (p->bias ? p->bias[index[1]] : 0);
    p->magnitude[at] = magnitude + (p->bias ? 1 : 0);
}

struct problem convolution_problem(const struct convolution_case *c)
{
    const int dims = c->rank - 2;
    struct problem p = {.name = c->name,
                        .layer = trial_extends("core::Convolution"),
                        .params = &c->params,
                        .rank = c->rank,
                        .out_rank = c->rank,
                        .weight_rank = c->rank,
                        .in_dims = {c->n, c->c},
                        .out_dims = {c->n, c->k},
                        .weight_dims = {c->k, c->c / c->params.groups}};
    for (int d = 0; d < dims; d++) {
        int64_t extent = (c->kernel[d] - 1) * list_at(c->params.dilation, d) + 1;
        p.in_dims[2 + d] = c->in[d];
        p.weight_dims[2 + d] = c->kernel[d];
        p.out_dims[2 + d] = (c->in[d] + pad_begin(c->params.pad, d) +
                             pad_end(c->params.pad, dims, d) - extent) /
                                list_at(c->params.stride, d) +
                            1;
    }
    p.input = trial_random(trial_product(p.in_dims, p.rank));
    p.weight = trial_random(trial_product(p.weight_dims, p.rank));
    p.bias = c->bias ? trial_random(c->k) : NULL;
    problem_answer(&p);
    for (int64_t i = 0; i < trial_product(p.out_dims, p.rank); i++)
        convolve_at(&p, c, i);
    return p;
}

struct problem product_problem(const struct product_case *c,
                               strata_fully_connected *params)
{
    struct problem p = {.name = c->name,
                        .layer = trial_extends("core::FullyConnected"),
                        .params = params,
                        .rank = c->rank,
                        .weight_rank = 2,
                        .out_rank = c->rank == 4 ? 4 : 2,
                        .out_dims = {c->in[0], c->units, 1, 1}};
    const int64_t k = trial_product(c->in + 1, c->rank - 1), m = c->units;

    memcpy(p.in_dims, c->in, sizeof p.in_dims);
    params->transposed = c->transposed;
    p.weight_dims[0] = c->transposed ? k : m;
    p.weight_dims[1] = c->transposed ? m : k;
    p.input = trial_random(c->in[0] * k);
    p.weight = trial_random(k * m);
    p.bias = c->bias ? trial_random(m) : NULL;
    problem_answer(&p);
    for (int64_t i = 0; i < c->in[0] * m; i++) {
        for (int64_t j = 0; j < k; j++) {
            double term = (double)p.input[i / m * k + j] *
                          p.weight[c->transposed ? j * m + i % m : i % m * k + j];
            p.expected[i] += term, p.magnitude[i] += fabs(term);
        }
        if (c->bias)
            p.expected[i] += p.bias[i % m], p.magnitude[i] += 1;
    }
    return p;
}

static double pool_at(const struct problem *p, const struct pooling_case *c, int64_t at,
                      double *magnitude)
{
    const int dims = p->rank - 2;
    int64_t index[5] = {0}, rest = at, inside = 0, taps = 1;
    double sum = 0, most = -INFINITY;

    for (int d = p->rank - 1; d >= 0; d--)
        index[d] = rest % p->out_dims[d], rest /= p->out_dims[d];
    for (int d = 0; d < dims; d++)
        taps *= c->kernel[d];
    for (int64_t tap = 0; tap < taps; tap++) {
        int64_t left = tap, position[3] = {0}, source = index[0] * c->c + index[1];
        bool valid = true;
        for (int d = dims - 1; d >= 0; d--) {
            position[d] = index[2 + d] * list_at(c->params.stride, d) -
                          pad_begin(c->params.pad, d) +
                          left % c->kernel[d] * list_at(c->params.dilation, d);
            left /= c->kernel[d];
            valid &= position[d] >= 0 && position[d] < c->in[d];
        }
        for (int d = 0; d < dims; d++)
            source = source * c->in[d] + position[d];
        if (valid) {
            sum += p->input[source], most = fmax(most, p->input[source]);
            inside++;
        }
    }
    *magnitude = 1;
    if (c->params.kind == STRATA_POOL_MAX)
        return most;
    return sum / (double)(c->params.count_include_pad ? taps : inside);
}

struct problem pooling_problem(const struct pooling_case *c)
{
    struct problem p = {.name = c->name,
                        .layer = trial_extends("core::Pooling"),
                        .params = &c->params,
                        .rank = c->rank,
                        .out_rank = c->rank,
                        .in_dims = {c->n, c->c},
                        .out_dims = {c->n, c->c}};
    for (int d = 0; d < c->rank - 2; d++) {
        int64_t stride = list_at(c->params.stride, d);
        int64_t begin = pad_begin(c->params.pad, d), extent = c->kernel[d];
        extent = (extent - 1) * list_at(c->params.dilation, d) + 1;
        int64_t room = c->in[d] + begin + pad_end(c->params.pad, c->rank - 2, d) - extent;
        int64_t out = (room + (c->params.ceil_mode ? stride - 1 : 0)) / stride + 1;
        if (c->params.ceil_mode && (out - 1) * stride >= c->in[d] + begin)
            out--;
        p.in_dims[2 + d] = c->in[d];
        p.out_dims[2 + d] = out;
    }
    p.input = trial_random(trial_product(p.in_dims, p.rank));
    problem_answer(&p);
    for (int64_t i = 0; i < trial_product(p.out_dims, p.rank); i++)
        p.expected[i] = pool_at(&p, c, i, &p.magnitude[i]);
    return p;
}
