/* SPDX-License-Identifier: Apache-2.0
 *
 * See host.h.
 */
#include "plugins/attention/host.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#include "plugins/common/element.h"

#define PARALLEL (1 << 16) /* bytes of a copy below which threads do not pay */

static int64_t bytes_of(int32_t dtype)
{
    return dtype == STRATA_FP64 ? 8 : dtype == STRATA_FP32 ? 4 : 2;
}

/* Row 0 of a head in the tensor that a view is of. */
static const char *head_of(const struct attention_view *v, const strata_tensor *tensors,
                           int64_t b, int64_t h)
{
    const char *data = tensors[v->port].data;
    return data + (v->begin + b * v->batch + h * v->head) * bytes_of(v->dtype);
}

static struct attention_rows rows_of(const struct attention_call *c,
                                     const struct attention_view *past,
                                     const struct attention_view *fresh, int64_t b,
                                     int64_t head, int64_t split, int64_t size)
{
    const int64_t bytes = bytes_of(fresh->dtype);
    struct attention_rows r = {.split = split, .size = size, .dtype = fresh->dtype};
    r.fresh = head_of(fresh, c->run->in, b, head);
    r.fresh_row = fresh->row * bytes;
    if (past->port >= 0) {
        r.past = head_of(past, c->run->in, b, head);
        r.past_row = past->row * bytes;
    }
    return r;
}

struct attention_rows attention_keys(const struct attention_call *c, int64_t b,
                                     int64_t head, int64_t split)
{
    const struct attention_plan *p = &c->plan;
    return rows_of(c, &p->past_k, &p->k, b, head, split, p->dim);
}

struct attention_rows attention_values(const struct attention_call *c, int64_t b,
                                       int64_t head, int64_t split)
{
    const struct attention_plan *p = &c->plan;
    return rows_of(c, &p->past_v, &p->v, b, head, split, p->v_dim);
}

const void *attention_query(const struct attention_call *c, int64_t b, int64_t h,
                            int64_t i)
{
    const struct attention_view *q = &c->plan.q;
    return head_of(q, c->run->in, b, h) + i * q->row * bytes_of(q->dtype);
}

void *attention_answer(const struct attention_call *c, int64_t b, int64_t h, int64_t i)
{
    const struct attention_view *y = &c->plan.y;
    char *data = c->run->out[y->port].data;
    return data + (b * y->batch + h * y->head + i * y->row) * bytes_of(y->dtype);
}

struct attention_reach attention_call_reach(const struct attention_call *c, int64_t b)
{
    return attention_reach_of(&c->plan, attention_length(&c->plan, c->lengths, b));
}

/* ---- present ---------------------------------------------------------------------- */

static void copy_rows(char *to, int64_t to_row, const char *from, int64_t from_row,
                      int64_t n, int64_t bytes)
{
    if (to == from || n <= 0)
        return;
    if (to_row == bytes && from_row == bytes) {
        memcpy(to, from, (size_t)(n * bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_row, from + i * from_row, (size_t)bytes);
}

/* A head's rows: those of the past, the fresh ones, and what a cache has behind. */
static void copy_head(const struct attention_call *c, const struct attention_view *view,
                      const struct attention_rows *r, int64_t b, int64_t head)
{
    const struct attention_reach reach = attention_call_reach(c, b);
    const int64_t there = c->plan.cache ? reach.keys : c->plan.keys;
    const int64_t bytes = r->size * bytes_of(r->dtype);
    const int64_t row = view->row * bytes_of(view->dtype);
    char *to = (char *)head_of(view, c->run->out, b, head);
    copy_rows(to, row, r->past, r->past_row, r->split, bytes);
    copy_rows(to + r->split * row, row, r->fresh, r->fresh_row, there - r->split, bytes);
    if (c->plan.cache)
        copy_rows(to + there * row, row, r->past + there * r->past_row, r->past_row,
                  c->plan.keys - there, bytes);
}

static void give_present(const struct attention_call *c)
{
    const struct attention_plan *p = &c->plan;
    const int64_t heads = p->batch * p->kv_heads;
    const int64_t bytes = heads * p->keys * (p->dim + p->v_dim) * bytes_of(p->q.dtype);
    (void)bytes;
#pragma omp parallel for schedule(static) if (bytes > PARALLEL)
    for (int64_t i = 0; i < 2 * heads; i++) {
        const int64_t b = i / 2 / p->kv_heads, head = i / 2 % p->kv_heads;
        const int64_t split = attention_call_reach(c, b).split;
        const struct attention_rows k = attention_keys(c, b, head, split),
                                    v = attention_values(c, b, head, split);
        copy_head(c, i % 2 ? &p->present_v : &p->present_k, i % 2 ? &v : &k, b, head);
    }
}

int attention_call_open(struct attention_call *c, const strata_run *r)
{
    const int status = attention_plan_run(&c->plan, r);
    if (status != STRATA_OK)
        return status;
    c->run = r;
    c->lengths = c->plan.lengths_port < 0 ? NULL : r->in[ATTENTION_LENGTHS].data;
    c->mask = c->plan.mask.port < 0 ? NULL : r->in[ATTENTION_MASK].data;
    if (c->plan.present_k.port >= 0)
        give_present(c);
    return STRATA_OK;
}

/* ---- rows as FP32 ----------------------------------------------------------------- */

const float *attention_load_rows(const struct attention_rows *r, int64_t j, int64_t n,
                                 int64_t width, float *copy, int64_t *row)
{
    const int one_piece = j >= r->split || j + n <= r->split;
    if (one_piece && r->dtype == STRATA_FP32 && r->size == width) {
        *row = (j < r->split ? r->past_row : r->fresh_row) / (int64_t)sizeof(float);
        return attention_row(r, j);
    }
    *row = width;
    for (int64_t i = 0; i < n; i++) {
        float *to = copy + i * width;
        element_load_row(to, attention_row(r, j + i), r->dtype, 0, 1, r->size);
        memset(to + r->size, 0, (size_t)(width - r->size) * sizeof *to);
    }
    return copy;
}

int attention_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

int attention_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}
