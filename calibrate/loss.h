/* SPDX-License-Identifier: Apache-2.0
 *
 * What quantising costs: each layer's own loss, on the inputs that the network of floats
 * gives it; the mean by which its output is off, channel by channel, which its bias can
 * put right; and what the network answers.
 */
#ifndef CALIBRATE_LOSS_H
#define CALIBRATE_LOSS_H

#include "calibrate/probe.h"

/* Sums of squares. */
struct noise {
    double signal, noise;
};
/* Decibels of signal over noise; infinite where there is no noise. */
double noise_db(const struct noise *n);

struct layer_loss {
    int64_t channels;
    double *off;         /* of each channel: sum of float less quantised */
    int64_t *count;      /* of each channel: elements in it, those that are finite */
    struct noise out;    /* of its output, as it is */
    struct noise mended; /* the same with its mean put right */
};

struct losses {
    const struct scheme *scheme;
    struct layer_loss *layers; /* of each of the network; channels 0: not quantised */
};
int losses_open(struct losses *l, const struct scheme *s, strata_error *err);
void losses_free(struct losses *l);
/* Both probes on n samples: what quantised layers read is put in from the floats. */
int losses_run(struct losses *l, struct probe *floats, struct probe *quantised,
               const struct samples *samples, size_t n, strata_error *err);
/* Turn sums into means: what each layer's bias is to be corrected by. The list is
 * malloc'ed, its entries stay the losses'. */
int losses_corrections(const double ***out, struct losses *l, strata_error *err);

/* What networks answer: the first output's largest element is the class. */
struct answers {
    size_t samples;
    size_t right_floats, right; /* by the labels, where they are given */
    size_t same;                /* the class of the floats */
    size_t odd, first_odd;      /* samples of which floats make NaN; the first of them */
    struct noise out;           /* of all outputs */
};
int answers_run(struct answers *a, struct probe *floats, struct probe *quantised,
                const struct samples *samples, const int64_t *labels, const char *what,
                strata_error *err);

#endif /* CALIBRATE_LOSS_H */
