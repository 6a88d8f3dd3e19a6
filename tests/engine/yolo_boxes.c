/* SPDX-License-Identifier: Apache-2.0
 *
 * From the maps of YOLO-Fastest to boxes: sigmoid and exp of each cell, a threshold on
 * the score, then non-maximum suppression within each class.
 */
#include "tests/engine/yolo_boxes.h"

#include <math.h>
#include <stdlib.h>

enum { ANCHORS = 3, CLASSES = 80, PER_ANCHOR = 5 + CLASSES };
static const double highest_overlap = 0.45, image_side = 320;

const struct yolo_head yolo_heads[YOLO_HEADS] = {
    {"head0", 10, {{115, 73}, {119, 199}, {242, 238}}},
    {"head1", 20, {{12, 18}, {37, 49}, {52, 132}}},
};

struct list {
    struct yolo_box *boxes;
    int n;
    double least; /* score */
};

static double sigmoid(float x)
{
    return 1 / (1 + exp(-(double)x));
}

/* One box for each class that scores well in a cell, for one anchor. v points at the
 * first of its channels; the others follow at distances of one plane. */
static void decode_cell(struct list *l, const float *v, const struct yolo_head *h,
                        const double *anchor, int cell)
{
    int plane = h->cells * h->cells;
    for (int k = 0; k < CLASSES; k++) {
        double score = sigmoid(v[4 * plane]) * sigmoid(v[(5 + k) * plane]);
        if (!(score > l->least))
            continue;
        if (l->n < YOLO_BOXES)
            l->boxes[l->n] = (struct yolo_box){
                .score = score,
                .class = k,
                .cx = (sigmoid(v[0]) + cell % h->cells) / h->cells,
                .cy = (sigmoid(v[plane]) + cell / h->cells) / h->cells,
                .w = exp((double)v[2 * plane]) * anchor[0] / image_side,
                .h = exp((double)v[3 * plane]) * anchor[1] / image_side,
            };
        l->n++;
    }
}

static double overlap(double a, double a_size, double b, double b_size)
{
    double end = fmin(a + a_size / 2, b + b_size / 2);
    return fmax(0, end - fmax(a - a_size / 2, b - b_size / 2));
}

static double intersection_over_union(const struct yolo_box *a, const struct yolo_box *b)
{
    double both = overlap(a->cx, a->w, b->cx, b->w) * overlap(a->cy, a->h, b->cy, b->h);
    return both / (a->w * a->h + b->w * b->h - both);
}

static int by_score(const void *a, const void *b)
{
    double x = ((const struct yolo_box *)a)->score;
    double y = ((const struct yolo_box *)b)->score;
    return (x < y) - (x > y);
}

/* Sort by score and drop every box that covers a better one of its class. */
static int suppress(struct yolo_box *boxes, int n)
{
    int kept = 0;
    qsort(boxes, (size_t)n, sizeof boxes[0], by_score);
    for (int i = 0; i < n; i++) {
        int covered = 0;
        for (int k = 0; k < kept && !covered; k++)
            covered = boxes[k].class == boxes[i].class &&
                      intersection_over_union(&boxes[k], &boxes[i]) > highest_overlap;
        if (!covered)
            boxes[kept++] = boxes[i];
    }
    return kept;
}

int yolo_decode(struct yolo_box boxes[YOLO_BOXES], const float *const maps[YOLO_HEADS],
                double least)
{
    struct list l = {boxes, 0, least};
    for (int i = 0; i < YOLO_HEADS; i++) {
        const struct yolo_head *h = &yolo_heads[i];
        int plane = h->cells * h->cells;
        for (int a = 0; a < ANCHORS; a++)
            for (int cell = 0; cell < plane; cell++)
                decode_cell(&l, maps[i] + a * PER_ANCHOR * plane + cell, h, h->anchors[a],
                            cell);
    }
    return l.n > YOLO_BOXES ? -1 : suppress(boxes, l.n);
}
