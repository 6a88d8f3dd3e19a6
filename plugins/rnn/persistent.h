/* SPDX-License-Identifier: Apache-2.0
 *
 * All steps of a layer in one kernel, FP16 and BF16: what persistent.cu and wide.cu offer
 * to C.
 */
#ifndef PLUGINS_RNN_PERSISTENT_H
#define PLUGINS_RNN_PERSISTENT_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERSISTENT_UNITS 8     /* of a block: with 4 gates two tiles of 16 rows */
#define PERSISTENT_HIDDEN 1024 /* most */

/* One direction. Distances are in elements. */
struct persistent_line {
    const void *weight; /* persistent_pack's */
    const float *bias;  /* 2*G*H, of inputs and recurrent; NULL: none */
    const void *sums;   /* T x B x sums_row: input products, gates apart by `gate` */
    void *slots;        /* T of persistent_slot; filled by the launch */
    void *y;
    const void *h0, *c0; /* B x hidden, or NULL */
    void *hn, *cn;       /* cn: NULL but of lstm */
    int32_t backward, reserved;
};

struct persistent_job {
    struct persistent_line line[2];
    const int32_t *lengths; /* or NULL */
    int64_t y_step, y_row, sums_step, sums_row, gate;
    int32_t steps, batch, hidden, directions;
    int32_t relu; /* of a simple cell, else tanh */
    /* The launch's own. */
    int32_t first; /* row */
    int64_t slot;  /* elements */
};

/* How a batch is divided: groups of `rows` that run beside each other. Chunks are of the
 * depth. */
struct persistent_shape {
    int32_t dtype, gates, chunks, rows, groups;
};

/* A kernel. */
struct persistent_kind {
    /* EUNSUPPORTED with the reason where blocks of all units cannot be resident. */
    int (*plan)(const strata_node *n, int gates, int64_t hidden, int directions,
                int64_t batch, struct persistent_shape *out);
    size_t (*pack_size)(const struct persistent_shape *s, int64_t hidden); /* bytes */
    /* Weights of a direction as the kernel holds them, on n's stream; r: G*H x H. */
    int (*pack)(const strata_node *n, const struct persistent_shape *s, const float *r,
                int64_t hidden, void *packed);
    /* Enqueue a layer. */
    int (*launch)(const strata_run *r, const struct persistent_shape *s,
                  const struct persistent_job *job);
};

extern const struct persistent_kind persistent_warps;
extern const struct persistent_kind persistent_wide; /* LSTM and GRU, sm_90a */

/* FP32 to the shape's dtype. */
int persistent_narrow(const strata_node *n, const struct persistent_shape *s,
                      const float *from, int64_t count, void *to);
/* Elements of a step's h, given on from block to block. */
static inline int64_t persistent_slot(int64_t batch, int64_t hidden)
{
    return (hidden + 31) / 32 * 32 * batch;
}

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_RNN_PERSISTENT_H */
