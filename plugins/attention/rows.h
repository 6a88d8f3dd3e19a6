/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores to weights in the vectors of the processor at hand. Both forms keep a running
 * maximum and the sum of exp(score - maximum); *factor is what sums that were taken with
 * the maximum before are to be multiplied with.
 */
#ifndef PLUGINS_ATTENTION_ROWS_H
#define PLUGINS_ATTENTION_ROWS_H

#include <stdint.h>

enum { ATTENTION_LINE = 64 }; /* keys of a line */

/* Queries beside each other: the score of key j and query c is s[j*row + c]. */
struct attention_score_tile {
    float *s; /* becomes the weights */
    int64_t row, keys, columns;
    float softcap;                 /* 0: none */
    const int32_t *begin, *end;    /* of a column, keys of the tile; NULL: all are seen */
    const float *key_mask;         /* an addend for each key, or NULL */
    const float *mask;             /* addends as s, or NULL */
    float *maximum, *sum, *factor; /* of each column */
};

/* One query: ATTENTION_LINE scores, those that are closed with an addend of -infinity. */
struct attention_score_line {
    float *s; /* becomes the weights */
    float softcap;
    const float *mask; /* addends, or NULL */
    float maximum, sum, factor;
};

struct attention_row_set {
    void (*tile)(const struct attention_score_tile *);
    void (*line)(struct attention_score_line *);
};

const struct attention_row_set *attention_rows_choose(void);

#endif /* PLUGINS_ATTENTION_ROWS_H */
