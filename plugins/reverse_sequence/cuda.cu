/* SPDX-License-Identifier: Apache-2.0
 *
 * ReverseSequence on CUDA: rows by plugins/common/index.cuh.
 */
#include "plugins/common/index.cuh"
#include "plugins/reverse_sequence/reverse_sequence.h"

struct reversed_row : public reverse_rows {
    __device__ int64_t operator()(int64_t row) const
    {
        const uint64_t each = (uint64_t)(middle * second);
        const uint64_t outer = index_divide((uint64_t)row, each);
        const int64_t i =
            (int64_t)(outer - index_divide(outer, (uint64_t)first) * (uint64_t)first);
        const uint64_t before = index_divide((uint64_t)row, (uint64_t)second);
        const int64_t j = row - (int64_t)before * second;
        const int64_t steps = index_value(length, dtype, time_first ? j : i);
        return time_first ? row + (reverse_step(i, steps, first) - i) * (int64_t)each
                          : row + reverse_step(j, steps, second) - j;
    }
};

static int reverse_run(const strata_run *r)
{
    const strata_reverse_sequence *p = (const strata_reverse_sequence *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t row = reverse_row(p, x);
    reversed_row source;
    (struct reverse_rows &)source = reverse_rows(p, x, &r->in[1]);
    return index_copy_rows(r, y->data, x->data, y->count / row,
                           row * index_size(x->dtype), source, "reverse_sequence");
}

static const strata_row rows[] = {{{INDEX_LINEAR, INDEX_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = reverse_run,
     .bandwidth = 0.85},
};

static const strata_extends reverse_sequence = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::ReverseSequence",
    .params_size = sizeof(strata_reverse_sequence),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&reverse_sequence};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::ReverseSequence", extends)
