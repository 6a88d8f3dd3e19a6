/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving elements as they are: the CUDA side of concatenating, slicing, shuffling,
 * padding and resizing by nearest neighbours. A job is a set of axes; a position on each
 * gives an offset on both sides. Launching orders the axes as they lie in the output,
 * joins those that can be one, and moves the widest words that lengths and addresses
 * allow.
 *
 * Host code only. All offsets and strides are in elements.
 */
#ifndef PLUGINS_COMMON_MOVE_MOVE_H
#define PLUGINS_COMMON_MOVE_MOVE_H

#include <stdint.h>

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOVE_FORMATS ((UINT64_C(1) << STRATA_FORMAT_COUNT) - 1) /* all */

#define MOVE_AXES (2 * STRATA_MAX_RANK + 1)
#define MOVE_FILL (-1) /* in a table: nothing to read, the job's fill is written */

/* Channels in vectors, whose lanes differ on the two sides: position i is channel
 * c = begin + i*step, at (c >> shift)*stride + (c & (vector - 1)). */
struct move_channels {
    int64_t begin, step, stride;
    int32_t shift;
};

struct move_axis {
    int64_t n;
    int64_t to, from;     /* strides */
    const int64_t *table; /* device memory: offset in the input of each position, a
                             multiple of `from`, or MOVE_FILL; NULL: position*from */
    int32_t odd;          /* follows the job's channels instead of `to` and, without a
                             table, `from` */
};

struct move_job {
    char *to;
    const char *from; /* NULL: every element is the fill */
    int32_t size;     /* bytes of an element: 1, 2, 4 or 8 */
    int32_t axes;
    struct move_axis axis[MOVE_AXES];
    struct move_channels to_channels, from_channels;
    uint32_t fill;       /* the element's bits, repeated up to 32 */
    uint32_t fill_upper; /* the upper half of an 8-byte element's */
};

/* A job from x, which may be NULL, to y, of one element type; it has no axes yet. */
void move_begin(struct move_job *job, const strata_tensor *y, const strata_tensor *x);

/* Let the job run over n indices of a dim on both sides, from y_begin in steps of one and
 * from x_begin in steps of x_step. Channels that lie in whole vectors on both sides and
 * end with one, or with y's last channel, are moved with their pad lanes: follow with
 * move_clear_pads. */
void move_dim(struct move_job *job, int d, const strata_tensor *y, int64_t y_begin,
              const strata_tensor *x, int64_t x_begin, int64_t x_step, int64_t n);

/* The same over all of y's dim d, with x's offsets from a table; NULL: as move_dim. */
void move_table(struct move_job *job, int d, const strata_tensor *y,
                const strata_tensor *x, const int64_t *table);

/* The same over all of y's dim d, from memory without vectors that has this stride. */
void move_dense(struct move_job *job, int d, const strata_tensor *y, int64_t from);

/* An axis of given strides. */
void move_add_axis(struct move_job *job, int64_t n, int64_t to, int64_t from);

/* Enqueue on r's stream. */
int move_launch(const strata_run *r, const struct move_job *job);

/* Enqueue n jobs that write apart from each other, in any order: those of at most two
 * plain axes go together in as few launches as hold them, the others alone. make is
 * called with 0 to n - 1 in turn, and fills a job that is empty. */
typedef void move_maker(const strata_run *r, int k, void *user, struct move_job *job);
int move_all(const strata_run *r, int n, move_maker *make, void *user);

/* Write zero into y's pad lanes, if it has any. */
int move_clear_pads(const strata_run *r, const strata_tensor *y);

/* Bytes of an element. */
int32_t move_size(int32_t dtype);

/* Offset of index i of dim d. */
int64_t move_offset(const strata_tensor *t, int d, int64_t i);

/* In setup: host values into device memory that lives with the state. */
int move_upload(const strata_node *n, const void *values, size_t bytes, void **device);

/* In setup: a table for each dim of out[0] whose bit is set in `dims`. source gives the
 * index in in[0] of an output index of dim d, or -1 for the fill. */
struct move_tables {
    const int64_t *dim[STRATA_MAX_RANK];
};
typedef int64_t move_source(const strata_node *n, int d, int64_t i);
int move_make_tables(const strata_node *n, uint32_t dims, move_source *source,
                     struct move_tables *out);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_COMMON_MOVE_MOVE_H */
