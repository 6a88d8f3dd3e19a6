/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of `strata quantise`: the data it runs on, and what it prints.
 */
#ifndef TOOLS_QUANTISE_QUANTISE_H
#define TOOLS_QUANTISE_QUANTISE_H

#include "calibrate/collect.h"
#include "calibrate/sensitivity.h"
#include "io/image/image.h"
#include "tools/tool.h"

/* ---- data.c -------------------------------------------------------------------------
 */

/* Where one input of the network has its samples: files, or the images of one. */
struct data_source {
    char **paths; /* sorted by name */
    size_t n_paths;
    struct idx images;    /* of an IDX file; data NULL: each path is a sample */
    struct weights *rows; /* an .npy file of many samples; NULL: none is */
    void **kept;          /* of each sample: the binding's bytes, or NULL */
};

struct data {
    struct data_source *inputs; /* of each of the network's */
    size_t n_inputs, n;         /* samples of each */
    uint64_t kept_bytes;
};
/* `texts` are "[INPUT=]PATH": a folder whose files are samples, an IDX file whose images
 * are, an .npy file whose rows are, or one sample. The first of each is looked at. */
int data_open(struct data *d, const strata_network *net, const char *const *texts,
              size_t n, strata_error *err);
void data_close(struct data *d);
/* A sample into a context's inputs; of struct samples. */
int data_load(void *data, strata_context *c, size_t i, strata_error *err);
/* A sample of which floats make NaN says nothing of the network: a warning, or where all
 * are such an error. */
int data_judge(const struct data *d, const struct answers *a, strata_error *err);

/* labels.c: a class for each of n samples, malloc'ed: of an IDX or .npy file, or of lines
 * of text. */
int labels_read(int64_t **out, const char *path, size_t n, strata_error *err);

/* ---- print.c ------------------------------------------------------------------------
 */

struct report {
    const struct scheme *scheme;   /* of all layers that may be quantised */
    const bool *kept;              /* of each layer: by the budget; or NULL */
    const struct losses *losses;   /* or NULL: no data */
    const struct answers *alone;   /* of each layer; or NULL */
    const struct answers *answers; /* of the network; or NULL */
    bool labelled;
    int format;
};
/* EXIT_OK, or after reporting. */
int report_print(const struct report *r, strata_error *err);

#endif /* TOOLS_QUANTISE_QUANTISE_H */
