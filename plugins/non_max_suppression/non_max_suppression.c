/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression: for each class of each image, the boxes of falling score that
 * overlap no box kept before. How many there are is data, so the output has room for all
 * and a count beside it.
 */
#include "plugins/non_max_suppression/non_max_suppression.h"

#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <strata/half.h>

#include "plugins/common/dense.h"
#include "plugins/common/team/turn.h"
#include "plugins/common/walk.h"

/* ---- shape ----------------------------------------------------------------------- */

static int nms_shape(const strata_node *n)
{
    const strata_non_max_suppression *p = n->params;
    const strata_tensor *box = &n->in[0], *score = &n->in[1];
    int64_t rows;
    if (box->rank != 3 || score->rank != 3 || box->dims[2] != 4 ||
        box->dims[0] != score->dims[0] || box->dims[1] != score->dims[2])
        return STRATA_FAIL(
            n, STRATA_EINVAL,
            "boxes of rank %d and scores of rank %d do not fit; needed are "
            "B x S x 4 and B x C x S",
            (int)box->rank, (int)score->rank);
    if (box->dims[1] > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EINVAL, "%lld boxes; less than 2^31 are supported",
                           (long long)box->dims[1]);
    if (__builtin_mul_overflow(score->dims[0], score->dims[1], &rows) ||
        __builtin_mul_overflow(rows, nms_most(p, box->dims[1]), &rows))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "the number of boxes kept does not fit");
    n->out[0].rank = 2;
    n->out[0].dims[0] = rows;
    n->out[0].dims[1] = 3;
    n->out[0].dtype = STRATA_INT64;
    n->out[1].rank = 1;
    n->out[1].dims[0] = 1;
    n->out[1].dtype = STRATA_INT32;
    return STRATA_OK;
}

static double nms_flops(const strata_node *n)
{
    const double boxes = (double)n->in[0].dims[1];
    return 4 * boxes * boxes * (double)(n->in[1].dims[0] * n->in[1].dims[1]);
}

/* ---- running --------------------------------------------------------------------- */

/* Of one class of an image: a heap of keys, the least on top; the boxes kept, and their
 * rows of the output. */
struct class_work {
    uint64_t *key;
    struct nms_box *box; /* of those kept */
    int64_t *row;
    int64_t keys, count;
};

static void sift(uint64_t *key, int64_t n, int64_t at)
{
    const uint64_t moved = key[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        child += child + 1 < n && key[child + 1] < key[child];
        if (key[child] >= moved)
            break;
        key[at] = key[child];
        at = child;
    }
    key[at] = moved;
}

static struct nms_box box_at(const strata_run *r, int64_t image, int64_t i)
{
    const strata_non_max_suppression *p = r->params;
    const float *v = (const float *)r->in[0].data + (image * r->in[0].dims[1] + i) * 4;
    return nms_box((double)v[0], (double)v[1], (double)v[2], (double)v[3], p->box);
}

static int is_free(const struct class_work *w, const struct nms_box *box, double iou)
{
    for (int64_t k = 0; k < w->count; k++)
        if (nms_overlap(&w->box[k], box, iou))
            return 0;
    return 1;
}

static void keep_class(const strata_run *r, struct class_work *w, int64_t c)
{
    const strata_non_max_suppression *p = r->params;
    const int64_t boxes = r->in[0].dims[1], most = nms_most(p, boxes),
                  image = c / r->in[1].dims[1];
    const float *score = (const float *)r->in[1].data + c * boxes;
    for (int64_t i = 0; i < boxes; i++) { /* no branch, which would not be foreseen */
        w->key[w->keys] = nms_key(strata_bits_of_float(score[i]), i);
        w->keys += (double)score[i] > p->score;
    }
    for (int64_t i = w->keys / 2 - 1; i >= 0; i--)
        sift(w->key, w->keys, i);
    while (w->keys > 0 && w->count < most) {
        const int64_t i = (int64_t)(w->key[0] & UINT32_MAX);
        w->key[0] = w->key[--w->keys];
        sift(w->key, w->keys, 0);
        const struct nms_box box = box_at(r, image, i);
        if (is_free(w, &box, p->iou)) {
            int64_t *row = w->row + 3 * w->count;
            row[0] = image;
            row[1] = c % r->in[1].dims[1];
            row[2] = i;
            w->box[w->count++] = box;
        }
    }
}

/* A thread takes one class at a time. */
static int64_t nms_threads(const strata_tensor *score)
{
    const int64_t all = score->dims[0] * score->dims[1];
    int64_t threads = 1;
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    return all > 0 && all < threads ? all : threads;
}

static size_t whole_lines(size_t bytes)
{
    return (bytes / 64 + 1) * 64;
}

/* How many boxes each class keeps comes first in the workspace. */
static size_t counts_of(const strata_tensor *score)
{
    return whole_lines((size_t)(score->dims[0] * score->dims[1]) * sizeof(int64_t));
}

/* Then, of each thread, the keys of a class and the boxes kept of it. */
static size_t share_of(const strata_non_max_suppression *p, int64_t boxes)
{
    return whole_lines((size_t)boxes * sizeof(uint64_t) +
                       (size_t)nms_most(p, boxes) * sizeof(struct nms_box));
}

static size_t nms_workspace(const strata_node *n)
{
    size_t bytes, counts;
    if (__builtin_mul_overflow((size_t)n->in[1].dims[0] * sizeof(int64_t),
                               (size_t)n->in[1].dims[1], &counts) ||
        counts > SIZE_MAX / 2 ||
        __builtin_mul_overflow(share_of(n->params, n->in[0].dims[1]),
                               (size_t)nms_threads(&n->in[1]), &bytes) ||
        __builtin_add_overflow(bytes, counts_of(&n->in[1]), &bytes))
        return SIZE_MAX;
    return bytes;
}

/* Each class has written its rows where the most of all before it would end. */
static void join_rows(const strata_run *r, const int64_t *count)
{
    const int64_t most = nms_most(r->params, r->in[0].dims[1]);
    int64_t *first = r->out[0].data, *row = first, *end = first + r->out[0].count;
    int32_t *total = r->out[1].data;
    for (int64_t c = 0; c < r->in[1].dims[0] * r->in[1].dims[1]; c++) {
        memmove(row, first + 3 * most * c, (size_t)count[c] * 3 * sizeof *row);
        row += 3 * count[c];
    }
    *total = (int32_t)((row - first) / 3);
    while (row < end)
        *row++ = -1;
}

static int nms_run(const strata_run *r)
{
    const int64_t all = r->in[1].dims[0] * r->in[1].dims[1], boxes = r->in[0].dims[1],
                  most = nms_most(r->params, boxes);
    const size_t counts = counts_of(&r->in[1]), share = share_of(r->params, boxes);
    const int64_t made = (int64_t)((r->workspace_size - counts) / share);
    const int64_t wanted = nms_threads(&r->in[1]);
    const int threads = all * boxes < 1024 ? 1 : (int)(wanted < made ? wanted : made);
    int64_t *count = r->workspace, next = 0;
    (void)threads;
#pragma omp parallel num_threads(threads)
    for (int64_t c; team_turn(&next, all, &c);) {
        char *own = (char *)r->workspace + counts;
#ifdef _OPENMP
        own += share * (size_t)omp_get_thread_num();
#endif
        uint64_t *key = (uint64_t *)(void *)own;
        struct class_work w = {key, (struct nms_box *)(void *)(key + boxes),
                               (int64_t *)r->out[0].data + 3 * most * c, 0, 0};
        keep_class(r, &w, c);
        count[c] = w.count;
    }
    join_rows(r, count);
    return STRATA_OK;
}

/* ---- reference ------------------------------------------------------------------- */

static struct nms_box exact_box(const strata_node *n, const double *box, int64_t i)
{
    const strata_non_max_suppression *p = n->params;
    return nms_box(box[4 * i], box[4 * i + 1], box[4 * i + 2], box[4 * i + 3], p->box);
}

/* The box of the highest score that is above the limit, is no earlier choice and overlaps
 * none; -1: there is none. kept: earlier choices, `n_kept` rows of the output. */
static int64_t exact_next(const strata_node *n, const double *box, const double *score,
                          const int64_t *kept, int64_t n_kept)
{
    const strata_non_max_suppression *p = n->params;
    int64_t best = -1;
    for (int64_t i = 0; i < n->in[0].dims[1]; i++) {
        const struct nms_box b = exact_box(n, box, i);
        int free = score[i] > p->score && (best < 0 || score[i] > score[best]);
        for (int64_t k = 0; k < n_kept && free; k++) {
            const struct nms_box a = exact_box(n, box, kept[3 * k + 2]);
            free = kept[3 * k + 2] != i && !nms_overlap(&a, &b, p->iou);
        }
        best = free ? i : best;
    }
    return best;
}

static int nms_reference(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_non_max_suppression *p = n->params;
    const int64_t boxes = n->in[0].dims[1], classes = n->in[1].dims[1];
    const int64_t most = nms_most(p, boxes), rows = n->out[0].dims[0];
    int64_t *row = out[0], *count = out[1];
    (void)weight;
    *count = 0;
    for (int64_t c = 0; c < n->in[1].dims[0] * classes; c++) {
        const double *box = (const double *)in[0] + c / classes * boxes * 4;
        const double *score = (const double *)in[1] + c * boxes;
        int64_t *first = row + 3 * *count;
        for (int64_t k = 0; k < most; k++) {
            const int64_t i = exact_next(n, box, score, first, k);
            if (i < 0)
                break;
            int64_t *to = row + 3 * (*count)++;
            to[0] = c / classes;
            to[1] = c % classes;
            to[2] = i;
        }
    }
    for (int64_t i = 3 * *count; i < 3 * rows; i++)
        row[i] = -1;
    return STRATA_OK;
}

/* A NaN score is never above the limit. */
static const void *nms_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     nms_reference};
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "max_output",
     .type = STRATA_I64,
     .flags = STRATA_REQUIRED,
     .offset = offsetof(strata_non_max_suppression, max_output),
     .min = 1,
     .max = INT32_MAX,
     .doc = "boxes kept of a class of an image, at most"},
    {.name = "iou",
     .type = STRATA_F64,
     .offset = offsetof(strata_non_max_suppression, iou),
     .min = 0,
     .max = 1,
     .doc = "a box goes that shares more than this part of what it and a kept one cover"},
    {.name = "score",
     .type = STRATA_F64,
     .offset = offsetof(strata_non_max_suppression, score),
     .def = -__builtin_huge_val(),
     .doc = "only boxes of a higher score are kept"},
    {.name = "box",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_non_max_suppression, box),
     .def = STRATA_BOX_CORNERS,
     .choices = "corners|center",
     .doc =
         "y1, x1, y2, x2 of two opposite corners; or x, y of the centre, width, height"},
};

static const strata_row rows[] = {
    {{STRATA_F32_NCHW, STRATA_F32_NCHW}, {STRATA_I64_NCHW, STRATA_I32_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .bandwidth = 0.1,
     .workspace = nms_workspace,
     .run = nms_run},
};

static const strata_layer non_max_suppression = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "NonMaxSuppression",
    .doc = "Boxes of falling score that overlap none of those before",
    .min_in = 2,
    .max_in = 2,
    .n_out = 2,
    .params_size = sizeof(strata_non_max_suppression),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = nms_shape,
    .flops = nms_flops,
    .extension = nms_extension,
};

static const strata_layer *const layers[] = {&non_max_suppression};
STRATA_MODULE("core", "1.0.0", "NonMaxSuppression", layers)
