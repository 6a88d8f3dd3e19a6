/* SPDX-License-Identifier: Apache-2.0
 *
 * An Attention as both devices compute it: sizes, and where heads lie in the tensors.
 * attention_plan is the only reader of attributes and shapes; kernels take a plan.
 */
#ifndef PLUGINS_ATTENTION_ATTENTION_H
#define PLUGINS_ATTENTION_ATTENTION_H

#include <strata/layers.h>
#include <strata/plugin.h>

#ifdef __CUDACC__
#define ATTENTION_BOTH __host__ __device__
#else
#define ATTENTION_BOTH
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ATTENTION_Q,
    ATTENTION_K,
    ATTENTION_V,
    ATTENTION_MASK,
    ATTENTION_PAST_K,
    ATTENTION_PAST_V,
    ATTENTION_LENGTHS,
    ATTENTION_INPUTS
};

/* A tensor as heads of rows of neighbouring elements. All in elements of its dtype. */
struct attention_view {
    int32_t port; /* of the node's inputs or outputs; -1: absent, all else 0 */
    int32_t dtype;
    int64_t begin;            /* of head 0, row 0 in the tensor; not 0 in packed ones */
    int64_t batch, head, row; /* distances */
};

/* How the mask is read: element (b, h, i, j) is at b*batch + h*head + i*row + j*key, and
 * keys from `keys` on are closed. A distance is 0 where a dim of 1 stretches. */
struct attention_mask {
    int32_t port;  /* -1: absent */
    int32_t dtype; /* STRATA_BOOL8: 1 takes part; floats are added to the scores */
    int64_t batch, head, row, key;
    int64_t keys;
};

struct attention_plan {
    int64_t batch, heads, kv_heads;
    int64_t group;  /* heads/kv_heads: query head h reads head h/group of K and V */
    int64_t length; /* rows of q */
    int64_t fresh;  /* rows of k and v */
    int64_t past;   /* rows of past_k and past_v; with cache the room */
    int64_t keys;   /* columns of the scores: past + fresh; with cache the room */
    int64_t dim, v_dim;
    struct attention_view q, k, v, past_k, past_v;         /* in[port] */
    struct attention_view y, present_k, present_v, scores; /* out[port] */
    struct attention_mask mask;
    int32_t lengths_port;  /* -1: absent */
    int32_t lengths_dtype; /* STRATA_INT32 or STRATA_INT64; element b is batch b's */
    double scale, softcap; /* scale is never 0 */
    int64_t window_left, window_right; /* -1: no bound */
    int32_t causal, cache;
    int32_t scores_kind; /* STRATA_SCORES_* */
    int32_t packed;      /* k and v are views of q's tensor */
};

/* What row b of the batch has. Key j < split is row j of past_k and past_v, key j >=
 * split row j - split of k and v. */
struct attention_reach {
    int64_t keys;   /* that are there, from 0; those behind are neither seen nor read */
    int64_t split;  /* first of k */
    int64_t offset; /* query i is at place i + offset; may be negative */
};

/* Check a node and describe it. EINVAL with a message in n->err. Reads of n: params, in,
 * err, host; also out where dims and strides are set (not in shape). */
int attention_plan(struct attention_plan *p, const strata_node *n);

/* The same in run, which may have a smaller batch than setup had. */
int attention_plan_run(struct attention_plan *p, const strata_run *r);

/* length: element b of lengths; any value where they are absent. */
static inline ATTENTION_BOTH struct attention_reach
attention_reach_of(const struct attention_plan *p, int64_t length)
{
    struct attention_reach r = {p->keys, p->past, p->past};
    length = length < 0 ? 0 : length < p->keys ? length : p->keys;
    if (p->cache) {
        r.split = length;
        r.keys = p->past - r.split < p->fresh ? p->past : r.split + p->fresh;
        r.offset = length;
    } else if (p->lengths_port >= 0) {
        r.keys = length;
        r.offset = length - p->length;
    }
    return r;
}

/* The keys [*begin, *end) that query i sees if the mask lets it; begin <= end. */
static inline ATTENTION_BOTH void attention_bounds(const struct attention_plan *p,
                                                   const struct attention_reach *r,
                                                   int64_t i, int64_t *begin,
                                                   int64_t *end)
{
    const int64_t place = i + r->offset;
    int64_t first = 0, last = r->keys - 1;
    if (p->window_left >= 0 && place - p->window_left > first)
        first = place - p->window_left;
    if (p->window_right >= 0 && place + p->window_right < last)
        last = place + p->window_right;
    if (p->causal && place < last)
        last = place;
    *begin = first;
    *end = last < first ? first : last + 1;
}

/* Element b of lengths on the host; 0 where they are absent. */
static inline int64_t attention_length(const struct attention_plan *p,
                                       const void *lengths, int64_t b)
{
    if (p->lengths_port < 0)
        return 0;
    return p->lengths_dtype == STRATA_INT32 ? ((const int32_t *)lengths)[b]
                                            : ((const int64_t *)lengths)[b];
}

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_ATTENTION_ATTENTION_H */
