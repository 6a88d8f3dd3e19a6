/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression: for each class of each image, the boxes of falling score that
 * overlap no box kept before. How many there are is data, so the output has room for all
 * and a count beside it.
 */
#include "plugins/non_max_suppression/non_max_suppression.h"

#include <strata/half.h>

#include "plugins/common/dense.h"
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

/* Of one class of an image: a heap of keys, the least on top; the boxes kept. */
struct class_work {
    uint64_t *key;
    struct nms_box *box; /* of those kept */
    int32_t *kept;
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

static void keep_class(const strata_run *r, struct class_work *w, int64_t image,
                       const float *score)
{
    const strata_non_max_suppression *p = r->params;
    const int64_t boxes = r->in[0].dims[1], most = nms_most(p, boxes);
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
            w->box[w->count] = box;
            w->kept[w->count++] = (int32_t)i;
        }
    }
}

/* Memory of all classes: keys, boxes kept, counts, and which they are. */
static size_t nms_workspace(const strata_node *n)
{
    const size_t classes = (size_t)n->in[1].dims[0] * (size_t)n->in[1].dims[1];
    const int64_t boxes = n->in[0].dims[1];
    const size_t most = (size_t)nms_most(n->params, boxes) * sizeof(struct nms_box);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)boxes, sizeof(uint64_t) + sizeof(int32_t),
                               &bytes) ||
        __builtin_add_overflow(bytes, most + sizeof(int64_t), &bytes) ||
        __builtin_mul_overflow(bytes, classes, &bytes))
        return SIZE_MAX;
    return bytes;
}

static void write_rows(const strata_run *r, const int32_t *kept, const int64_t *count)
{
    const int64_t classes = r->in[1].dims[1], boxes = r->in[0].dims[1];
    int64_t *row = r->out[0].data, *end = row + r->out[0].count;
    int32_t *total = r->out[1].data;
    *total = 0;
    for (int64_t c = 0; c < r->in[1].dims[0] * classes; c++) {
        *total += (int32_t)count[c];
        for (int64_t k = 0; k < count[c]; k++, row += 3) {
            row[0] = c / classes;
            row[1] = c % classes;
            row[2] = kept[c * boxes + k];
        }
    }
    while (row < end)
        *row++ = -1;
}

static int nms_run(const strata_run *r)
{
    const int64_t images = r->in[1].dims[0], classes = r->in[1].dims[1],
                  boxes = r->in[0].dims[1], all = images * classes,
                  most = nms_most(r->params, boxes);
    uint64_t *key = r->workspace;
    struct nms_box *box = (struct nms_box *)(void *)(key + all * boxes);
    int64_t *count = (int64_t *)(void *)(box + all * most);
    int32_t *kept = (int32_t *)(void *)(count + all);
#pragma omp parallel for schedule(dynamic) if (all * boxes >= 1024)
    for (int64_t c = 0; c < all; c++) {
        struct class_work w = {key + c * boxes, box + c * most, kept + c * boxes, 0, 0};
        keep_class(r, &w, c / classes, (const float *)r->in[1].data + c * boxes);
        count[c] = w.count;
    }
    write_rows(r, kept, count);
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
