/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of NonMaxSuppression: limits, both forms of boxes, ties, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"NonMaxSuppression", "max_output = 5; iou = 0.3", .n_in = 2,
     .in = {S3(1, 20, 4), S3(1, 1, 20)}},
    {"NonMaxSuppression", "max_output = 3; iou = 0.2; score = 0.5", .n_in = 2,
     .in = {S3(2, 33, 4), S3(2, 3, 33)}},
    {"NonMaxSuppression", "max_output = 100; iou = 0.5; box = center", .n_in = 2,
     .in = {S3(2, 40, 4), S3(2, 2, 40)}},
    {"NonMaxSuppression", "max_output = 100", .n_in = 2,
     .in = {S3(1, 1, 4), S3(1, 4, 1)}},
    /* Whole numbers: ties of scores, boxes of no area. */
    {"NonMaxSuppression", "max_output = 20; iou = 0.1", .n_in = 2,
     .in = {S3(2, 50, 4), S3(2, 2, 50)}, .low = -3, .high = 3, .integers = true},
    {"NonMaxSuppression", "max_output = 5; score = 100", .n_in = 2,
     .in = {S3(1, 20, 4), S3(1, 1, 20)}},
    {"NonMaxSuppression", "", .n_in = 2, .in = {S3(1, 20, 4), S3(1, 1, 20)},
     .refused = true},
    {"NonMaxSuppression", "max_output = 5", .n_in = 2, .in = {S3(1, 20, 5), S3(1, 1, 20)},
     .refused = true},
    {"NonMaxSuppression", "max_output = 5", .n_in = 2, .in = {S3(1, 20, 4), S3(1, 1, 19)},
     .refused = true},
    {"NonMaxSuppression", "max_output = 5", .n_in = 2, .in = {S3(2, 20, 4), S3(1, 1, 20)},
     .refused = true},
};

static const struct layer_case large[] = {
    {"NonMaxSuppression", "max_output = 200; iou = 0.5", .n_in = 2,
     .in = {S3(1, 1000, 4), S3(1, 4, 1000)}},
    {"NonMaxSuppression", "max_output = 50; iou = 0.5; box = center", .n_in = 2,
     .in = {S3(1, 5000, 4), S3(1, 2, 5000)}},
};

LAYER_CASES(NonMaxSuppression, ORDINARY(cases), LARGE(large))
