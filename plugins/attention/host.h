/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of Attention on the host: where rows of keys and values come from, and copies
 * of them as FP32.
 */
#ifndef PLUGINS_ATTENTION_HOST_H
#define PLUGINS_ATTENTION_HOST_H

#include "plugins/attention/attention.h"

struct attention_call {
    struct attention_plan plan;
    const strata_run *run;
    const void *lengths, *mask; /* NULL: absent */
};

/* Keys or values of one head of K and V: some of the past, then fresh ones. */
struct attention_rows {
    const char *past, *fresh;    /* row 0 of either */
    int64_t past_row, fresh_row; /* bytes from one to the next */
    int64_t split;               /* rows of the past */
    int64_t size;                /* elements */
    int32_t dtype;
};

/* Plan the run, and give present_k and present_v. */
int attention_call_open(struct attention_call *c, const strata_run *r);

struct attention_reach attention_call_reach(const struct attention_call *c, int64_t b);

struct attention_rows attention_keys(const struct attention_call *c, int64_t b,
                                     int64_t head, int64_t split);
struct attention_rows attention_values(const struct attention_call *c, int64_t b,
                                       int64_t head, int64_t split);

/* Row j, of r->size elements. */
static inline const void *attention_row(const struct attention_rows *r, int64_t j)
{
    return j < r->split ? r->past + j * r->past_row
                        : r->fresh + (j - r->split) * r->fresh_row;
}

/* Query i of query head h. */
const void *attention_query(const struct attention_call *c, int64_t b, int64_t h,
                            int64_t i);
void *attention_answer(const struct attention_call *c, int64_t b, int64_t h, int64_t i);

/*
 * Rows [j, j + n) as FP32, `width` >= size elements each, of which those behind size are
 * zeros or belong to nobody. They stay where they are, *row elements apart, if they are
 * FP32 of that width in one piece; else they are copied to n*width elements of `copy`.
 */
const float *attention_load_rows(const struct attention_rows *r, int64_t j, int64_t n,
                                 int64_t width, float *copy, int64_t *row);

/* Threads that share a workspace made of `share` bytes each. */
int attention_threads(void);
int attention_thread(void);

#endif /* PLUGINS_ATTENTION_HOST_H */
